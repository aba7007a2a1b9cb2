--- The review of a proposal: its diff against the buffer as it is, to be accepted or rejected.
local client = require('starling.client')
local state = require('starling.state')
local window = require('starling.window')
local M = {}

local open = nil ---@type {buffer: integer, window: integer, run: string, proposal: integer}?

local FOOTER = 'a accept · r reject · s steer · e edit · d side by side · ] [ next, previous · q close'

local function lines_of(shown)
  local lines = {}
  for line in vim.gsplit(vim.trim(shown.summary), '\n') do
    -- It is Markdown; here the words are enough.
    if not line:match('^```') then
      table.insert(lines, (line:gsub('%*%*', '')))
    end
  end
  for _, file in ipairs(shown.files) do
    if file.conflict ~= vim.NIL then
      table.insert(lines, '')
      table.insert(lines, ('%s: %s'):format(vim.fs.basename(vim.uri_to_fname(file.uri)), file.conflict))
    end
  end
  table.insert(lines, '')
  vim.list_extend(lines, vim.split((shown.diff:gsub('\n$', '')), '\n'))
  return vim.tbl_map(function(line)
    return (line:gsub('\r', ''))
  end, lines)
end

--- Colours of a diff, as the user's scheme has them.
local function paint(buffer)
  vim.api.nvim_buf_call(buffer, function()
    vim.cmd([[syntax match diffAdded "^+.*" | syntax match diffRemoved "^-.*" | syntax match diffLine "^@@.*"]])
    vim.cmd([[syntax match Title "\%1l.*" | syntax match diffFile "^\(+++\|---\) .*" | syntax match Error "BROKEN.*"]])
    vim.cmd([[hi def link diffAdded Added | hi def link diffRemoved Removed | hi def link diffLine Statement]])
  end)
end

local function close()
  if open then
    window.close(open.window)
    open = nil
  end
end

local function show(shown)
  if not open or not vim.api.nvim_buf_is_valid(open.buffer) then
    return
  end
  window.write(open.buffer, lines_of(shown))
  open.version = shown.version
end

local function ask_again()
  local asked = open
  if not asked then
    return
  end
  client.request('starling/proposal', { run = asked.run, proposal = asked.proposal }, function(shown)
    if open ~= asked then
      return
    end
    if shown.state ~= 'waiting' then
      close()
      return
    end
    show(shown)
  end)
end

local function decide(command, extra)
  return function()
    local about = { run = open.run, proposal = open.proposal, version = open.version }
    close()
    client.execute(command, vim.tbl_extend('force', about, extra or {}))
  end
end

--- Asks for a text and sends it.
local function with_text(prompt, command, key, about)
  vim.ui.input({ prompt = prompt }, function(text)
    if text and vim.trim(text) ~= '' then
      local argument = vim.tbl_extend('force', {}, about)
      argument[key] = text
      client.execute(command, argument)
      close()
    end
  end)
end

function M.reject(about)
  with_text('Why? ', 'starling.reject', 'reason', about)
end

function M.steer(about)
  with_text('What instead? ', 'starling.steer', 'text', about)
end

--- A tab with the file as it is on the left, with the proposal on the right.
local function side_by_side(about)
  client.request('starling/proposal', about, function(shown)
    local file = shown.files[1]
    -- A conflict: your text beside the proposed one.
    local fits = file and type(file.after) == 'string'
    local proposed = file and (fits and file.after or file.proposed)
    if not proposed then
      client.say('there is nothing to compare any more', vim.log.levels.WARN)
      return
    end
    close()
    vim.cmd.tabedit(vim.fn.fnameescape(vim.uri_to_fname(file.uri)))
    local filetype = vim.bo.filetype
    vim.cmd.diffthis()
    vim.cmd('rightbelow vsplit')
    local after = window.buffer('after', filetype)
    window.write(after, vim.split((proposed:gsub('\r', ''):gsub('\n$', '')), '\n'))
    vim.api.nvim_win_set_buf(0, after)
    vim.cmd.diffthis()
    vim.wo.winbar = (fits and '#%d with the proposal: a accept · r reject · q close'
      or '#%d conflicts with yours: a hand back · r reject · q close'):format(about.proposal)
    local function leave()
      vim.cmd.tabclose()
    end
    local answered = vim.tbl_extend('force', { version = shown.version }, about)
    window.keys(after, {
      q = leave,
      a = function()
        leave()
        client.execute('starling.accept', answered)
      end,
      r = function()
        M.reject(answered)
      end,
    })
  end)
end

--- The proposal before or after one, of those that wait.
function M.beside(about, by)
  local all = state.waiting()
  for at, one in ipairs(all) do
    if one.run == about.run and one.proposal.proposal == about.proposal then
      local next = all[(at - 1 + by) % #all + 1]
      return { run = next.run, proposal = next.proposal.proposal }
    end
  end
  return about
end

local function step(by)
  return function()
    M.open(M.beside(open, by))
  end
end

--- Opens the review of a proposal.
---@param about {run: string, proposal: integer}
function M.open(about)
  client.request('starling/proposal', { run = about.run, proposal = about.proposal }, function(shown)
    close()
    local buffer = window.buffer('review', 'starling')
    window.write(buffer, lines_of(shown))
    local title = ('Starling #%d: %s'):format(shown.proposal, shown.symbol)
    local is_waiting = shown.state == 'waiting'
    local float = window.float(buffer, title, is_waiting and FOOTER or (shown.state .. ' · q close'))
    paint(buffer)
    local mine = { buffer = buffer, window = float, run = about.run, proposal = shown.proposal }
    mine.version = shown.version
    open = mine
    window.keys(buffer, { q = close, ['<Esc>'] = close, [']'] = step(1), ['['] = step(-1) })
    if is_waiting then
      local same = { run = about.run, proposal = shown.proposal }
      local function answered()
        return vim.tbl_extend('force', { version = mine.version }, same)
      end
      window.keys(buffer, {
        a = decide('starling.accept'),
        r = function()
          M.reject(answered())
        end,
        s = function()
          M.steer(answered())
        end,
        e = function()
          close()
          require('starling.edit').open(same)
        end,
        d = function()
          side_by_side(same)
        end,
      })
      state.watch(function()
        if open ~= mine then
          return false
        end
        ask_again()
      end)
    end
  end)
end

--- The version of the proposal that is on the screen.
function M.version()
  return open and open.version
end

--- Whether the review of a proposal is on the screen.
function M.shows(about)
  return open ~= nil
    and vim.api.nvim_win_is_valid(open.window)
    and open.run == about.run
    and open.proposal == about.proposal
end

--- The proposal that is meant: that of the review, the first in the buffer, or the oldest.
---@param buffer integer
function M.meant(buffer)
  if open and buffer == open.buffer then
    return { run = open.run, proposal = open.proposal }
  end
  local waiting = state.waiting()
  local here = vim.uri_from_bufnr(buffer)
  local best = waiting[1]
  for at = #waiting, 1, -1 do
    if vim.tbl_contains(waiting[at].proposal.uris, here) then
      best = waiting[at]
    end
  end
  return best and { run = best.run, proposal = best.proposal.proposal }
end

return M
