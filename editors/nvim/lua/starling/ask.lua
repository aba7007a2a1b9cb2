--- The panel of questions: answers as they come, citations to jump to, follow-up questions.
local client = require('starling.client')
local window = require('starling.window')
local M = {}

local panel = nil ---@type {buffer: integer, session: string}?
--- The questions whose answers come: where each is written.
local going = {}
local sessions = 0

local function jump()
  local word = vim.fn.expand('<cWORD>')
  local path, line = word:match('([%w%._/%-]+):(%d+)')
  if not path then
    return
  end
  local running = client.get()
  local root = running and (running.root_dir or running.config.root_dir) or vim.uv.cwd()
  vim.cmd.wincmd('p')
  vim.cmd.edit(vim.fn.fnameescape(vim.fs.joinpath(root, path)))
  vim.api.nvim_win_set_cursor(0, { math.min(tonumber(line), vim.api.nvim_buf_line_count(0)), 0 })
end

local function open()
  if panel and vim.api.nvim_buf_is_valid(panel.buffer) then
    if vim.fn.bufwinid(panel.buffer) == -1 then
      vim.cmd('botright vsplit')
      vim.api.nvim_win_set_buf(0, panel.buffer)
    end
    return panel
  end
  vim.cmd('botright vsplit')
  sessions = sessions + 1
  panel = { buffer = window.buffer('ask', 'markdown'), session = ('neovim-%d'):format(sessions) }
  vim.bo[panel.buffer].bufhidden = 'hide'
  vim.bo[panel.buffer].modifiable = false
  vim.api.nvim_win_set_buf(0, panel.buffer)
  vim.wo.wrap = true
  vim.wo.linebreak = true
  window.keys(panel.buffer, {
    q = '<Cmd>close<CR>',
    ['<CR>'] = jump,
    i = function()
      require('starling.commands').call('ask', '')
    end,
    s = function()
      for id in pairs(going) do
        client.execute('starling.cancel', { ask = id })
      end
    end,
  })
  return panel
end

--- Replaces the lines of an answer by others; keeps what follows.
local function set(entry, lines)
  if not vim.api.nvim_buf_is_valid(entry.buffer) then
    return
  end
  lines = vim.tbl_map(function(line)
    return (line:gsub('[\r\n]', ' '))
  end, lines)
  vim.bo[entry.buffer].modifiable = true
  local mark = vim.api.nvim_buf_get_extmark_by_id(entry.buffer, M.namespace, entry.mark, {})
  vim.api.nvim_buf_set_lines(entry.buffer, mark[1] + 1, mark[1] + 1 + entry.count, false, lines)
  vim.bo[entry.buffer].modifiable = false
  entry.count = #lines
  local view = vim.fn.bufwinid(entry.buffer)
  if view ~= -1 then
    vim.api.nvim_win_set_cursor(view, { vim.api.nvim_buf_line_count(entry.buffer), 0 })
  end
end

M.namespace = vim.api.nvim_create_namespace('starling.ask')

--- Asks; the answer comes into the panel.
function M.ask(argument)
  local origin = vim.api.nvim_get_current_win()
  local target = open()
  if vim.api.nvim_win_is_valid(origin) and vim.api.nvim_win_get_buf(origin) ~= target.buffer then
    vim.api.nvim_set_current_win(origin)
  end
  argument.session = target.session
  client.execute('starling.ask', argument, function(reply)
    local buffer = target.buffer
    vim.bo[buffer].modifiable = true
    local last = vim.api.nvim_buf_line_count(buffer)
    local title = '## ' .. (argument.symbol and (argument.symbol .. ': ') or '') .. argument.question
    local is_first = last == 1 and vim.api.nvim_buf_get_lines(buffer, 0, 1, false)[1] == ''
    vim.api.nvim_buf_set_lines(buffer, is_first and 0 or last, -1, false, is_first and { title, '' } or { '', title, '' })
    vim.bo[buffer].modifiable = false
    local row = vim.api.nvim_buf_line_count(buffer) - 1
    local mark = vim.api.nvim_buf_set_extmark(buffer, M.namespace, row, 0, {})
    local entry = { buffer = buffer, mark = mark, count = 0, said = '', doing = 'looks at the code…' }
    local early = going[reply.ask]
    going[reply.ask] = entry
    set(entry, { '_' .. entry.doing .. '_' })
    for _, params in ipairs(early or {}) do
      M.news(params)
    end
  end)
end

local function doing(step)
  if step.step == 'looked' then
    return ('%s %s %s'):format(step.by, step.tool, step.argument)
  elseif step.step == 'asked' then
    return ('asks %s: %s'):format(step.symbol, step.question)
  elseif step.step == 'trouble' then
    return ('%s: %s'):format(step.who, step.what)
  end
end

--- `starling/answer`
function M.news(params)
  local entry = going[params.ask]
  if not entry or entry.buffer == nil then
    -- It came before the answer that names it.
    going[params.ask] = entry or {}
    table.insert(going[params.ask], params)
    return
  end
  local step = params.step
  if step and step.step == 'said' then
    entry.said = entry.said .. step.text
  elseif step and step.step == 'restarted' then
    entry.said = ''
  elseif step then
    entry.doing = doing(step) or entry.doing
  end
  local lines
  if params.answer then
    lines = vim.split(vim.trim(params.answer.answer), '\n')
    local answer = params.answer
    table.insert(lines, '')
    table.insert(lines, ('_%d calls, %.1f s; <CR> on a citation opens it_'):format(answer.calls, answer.seconds))
  elseif params.error then
    lines = { '**' .. params.error .. '**' }
  else
    lines = entry.said == '' and {} or vim.split(vim.trim(entry.said), '\n')
    table.insert(lines, '_' .. entry.doing .. '_')
  end
  set(entry, lines)
  if not step then
    going[params.ask] = nil
  end
end

return M
