--- What is offered on a symbol, at the end of its first line: no line of the text moves when it comes or
--- goes. It is read and drawn here, for Neovim's own lenses are lines of their own from 0.12 on.
local options = require('starling.options')
local M = {}

local space = vim.api.nvim_create_namespace('starling.offers')

--- The titles of lenses by lines, what they are about first.
local function by_line(lenses)
  local lines = {}
  for _, lens in ipairs(lenses or {}) do
    local title = lens.command and lens.command.title
    if title then
      local line = lens.range.start.line
      local titles = lines[line] or {}
      lines[line] = titles
      table.insert(titles, vim.startswith(title, 'Starling') and 1 or #titles + 1, title)
    end
  end
  return lines
end

local function draw(buffer, lenses)
  vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
  local last = vim.api.nvim_buf_line_count(buffer) - 1
  for line, titles in pairs(by_line(lenses)) do
    vim.api.nvim_buf_set_extmark(buffer, space, math.min(line, last), 0, {
      virt_text = { { table.concat(titles, ' · '), 'LspCodeLens' } },
      virt_text_pos = 'eol',
      hl_mode = 'combine',
    })
  end
end

--- Draws what is offered in a buffer now.
function M.refresh(client, buffer)
  if not options.values.lenses or not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  local changed = vim.api.nvim_buf_get_changedtick(buffer)
  local params = { textDocument = { uri = vim.uri_from_bufnr(buffer) } }
  local function answered(failure, lenses)
    -- What was typed meanwhile asks again.
    local is_current = vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_changedtick(buffer) == changed
    if not failure and is_current then
      draw(buffer, lenses)
    end
  end
  if vim.fn.has('nvim-0.11') == 1 then
    client:request('textDocument/codeLens', params, answered, buffer)
  else
    client.request('textDocument/codeLens', params, answered, buffer)
  end
end

--- Draws in all buffers of a server.
function M.refresh_all(client)
  for buffer in pairs(client.attached_buffers) do
    M.refresh(client, buffer)
  end
end

--- Follows a buffer.
function M.attach(client, buffer)
  local group = vim.api.nvim_create_augroup('starling.offers', { clear = false })
  vim.api.nvim_clear_autocmds({ group = group, buffer = buffer })
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave', 'TextChanged' }, {
    group = group,
    buffer = buffer,
    callback = function()
      local now = vim.lsp.get_clients({ name = client.name, bufnr = buffer })[1]
      if now then
        M.refresh(now, buffer)
      end
    end,
  })
  M.refresh(client, buffer)
end

return M
