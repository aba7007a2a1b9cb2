--- Floating windows and panels with text that is not to be edited.
local M = {}

--- A scratch buffer.
function M.buffer(name, filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].filetype = filetype
  vim.b[buffer].starling = name
  return buffer
end

--- Replaces the text of such a buffer.
function M.write(buffer, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
end

--- A float in the middle, as large as its text needs and the screen allows.
function M.float(buffer, title, footer)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local widest = vim.fn.strdisplaywidth(footer) + 2
  for _, line in ipairs(lines) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line))
  end
  local width = math.max(20, math.min(widest + 1, vim.o.columns - 4))
  local height = math.max(1, math.min(#lines, vim.o.lines - 6))
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.floor((vim.o.lines - height) / 2) - 1,
    col = math.floor((vim.o.columns - width) / 2),
    style = 'minimal',
    border = 'rounded',
    title = ' ' .. title .. ' ',
    title_pos = 'center',
    footer = ' ' .. footer .. ' ',
    footer_pos = 'center',
  })
  vim.wo[window].wrap = false
  vim.wo[window].cursorline = true
  return window
end

--- Keys of a buffer, each with what it does.
function M.keys(buffer, keys)
  for key, action in pairs(keys) do
    vim.keymap.set('n', key, action, { buffer = buffer, nowait = true, silent = true })
  end
end

function M.close(window)
  if vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_win_close(window, true)
  end
end

return M
