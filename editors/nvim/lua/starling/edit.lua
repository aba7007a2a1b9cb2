--- A proposal as the user wants it: its file in a diff, the right side to be edited and written.
local client = require('starling.client')
local state = require('starling.state')
local window = require('starling.window')
local M = {}

local function lines_of(text)
  return vim.split((text:gsub('\r', ''):gsub('\n$', '')), '\n')
end

--- Shows the version of the user when it waits for review again.
local function show_when_checked(about)
  state.now(function()
    state.watch(function()
      for _, run in ipairs(state.runs) do
        for _, proposal in ipairs(run.run == about.run and run.proposals or {}) do
          if proposal.proposal == about.proposal and proposal.state ~= 'checking' then
            if proposal.state == 'waiting' then
              require('starling.review').open(about)
            end
            return false
          end
        end
      end
    end)
  end)
end

local function write(buffer, about, file)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') .. '\n'
  local files = { { uri = file.uri, before = file.before, text = text } }
  client.execute('starling.edit', vim.tbl_extend('force', { files = files }, about), function()
    if vim.api.nvim_buf_is_valid(buffer) then
      vim.bo[buffer].modified = false
      for _, shown in ipairs(vim.fn.win_findbuf(buffer)) do
        local tab = vim.api.nvim_tabpage_get_number(vim.api.nvim_win_get_tabpage(shown))
        vim.cmd.tabclose(tab)
      end
    end
    client.say(('your version of #%d is checked'):format(about.proposal))
    show_when_checked(about)
  end)
end

local function edit(about, file)
  vim.cmd.tabedit(vim.fn.fnameescape(vim.uri_to_fname(file.uri)))
  local filetype = vim.bo.filetype
  vim.cmd.diffthis()
  vim.cmd('rightbelow vsplit')
  local buffer = window.buffer('edit', filetype)
  vim.bo[buffer].buftype = 'acwrite'
  vim.api.nvim_buf_set_name(buffer, ('starling://%s/%d/%s'):format(about.run, about.proposal, vim.uri_to_fname(file.uri)))
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines_of(file.after))
  vim.bo[buffer].modified = false
  vim.api.nvim_win_set_buf(0, buffer)
  vim.cmd.diffthis()
  vim.wo.winbar = ('#%d, your version: :w check · do take back · :q! leave'):format(about.proposal)
  vim.api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buffer,
    callback = function()
      write(buffer, about, file)
    end,
  })
end

--- Opens the files of a proposal to be edited, one of them where there are several.
---@param about {run: string, proposal: integer}
function M.open(about)
  client.request('starling/proposal', about, function(shown)
    local files = vim.tbl_filter(function(file)
      return type(file.after) == 'string'
    end, shown.state == 'waiting' and shown.files or {})
    if #files == 0 then
      client.say(('#%d does not wait, or conflicts with what you typed'):format(about.proposal), vim.log.levels.WARN)
      return
    end
    local edited = vim.tbl_extend('force', { version = shown.version }, about)
    if #files == 1 then
      edit(edited, files[1])
      return
    end
    local name = function(file)
      return vim.fn.fnamemodify(vim.uri_to_fname(file.uri), ':.')
    end
    vim.ui.select(files, { prompt = 'Edit which file?', format_item = name, kind = 'starling' }, function(file)
      if file then
        edit(edited, file)
      end
    end)
  end)
end

return M
