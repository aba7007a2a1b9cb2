--- The float in which a task or a question of several lines is written.
local client = require('starling.client')
local M = {}

local HISTORY = 50
--- How long a completion may wait for the server.
local COMPLETE = 2000

local function history_file()
  return vim.fs.joinpath(vim.fn.stdpath('state'), 'starling-history.json')
end

--- The texts that were sent, the oldest first.
function M.history()
  local file = io.open(history_file())
  if not file then
    return {}
  end
  local read, texts = pcall(vim.json.decode, file:read('*a'))
  file:close()
  return read and type(texts) == 'table' and texts or {}
end

--- Keeps a text as the newest one.
function M.remember(text)
  local texts = vim.tbl_filter(function(known)
    return known ~= text
  end, M.history())
  table.insert(texts, text)
  texts = vim.list_slice(texts, math.max(1, #texts - HISTORY + 1))
  vim.fn.mkdir(vim.fs.dirname(history_file()), 'p')
  local file = io.open(history_file(), 'w')
  if file then
    file:write(vim.json.encode(texts))
    file:close()
  end
end

--- 'completefunc' of the float: `@path` and `#Symbol`.
function M.complete(find_start, base)
  if find_start == 1 then
    local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
    local start = before:match('()[@#][%w_%./:-]*$')
    return start and start - 1 or -3
  end
  local reply = client.wait('starling/mentions', { mention = base }, COMPLETE)
  return vim.tbl_map(function(item)
    return { word = item.text, menu = item.detail }
  end, reply and reply.items or {})
end

--- Opens the float; `send` gets the text. An empty text is not sent.
function M.open(title, send)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].buftype = 'acwrite'
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].completefunc = "v:lua.require'starling.compose'.complete"
  vim.b[buffer].starling = 'compose'
  vim.api.nvim_buf_set_name(buffer, 'starling://compose/' .. buffer)
  local width = math.max(20, math.min(80, vim.o.columns - 4))
  local height = math.max(1, math.min(8, vim.o.lines - 6))
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
    footer = ' <C-s> or :w sends · <C-x><C-u> completes @ and # · <Up> history ',
    footer_pos = 'center',
  })
  vim.wo[window].wrap = true
  vim.wo[window].linebreak = true

  local function close()
    vim.cmd.stopinsert()
    if vim.api.nvim_buf_is_valid(buffer) then
      vim.bo[buffer].modified = false
    end
    require('starling.window').close(window)
  end
  local function submit()
    local text = vim.trim(table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n'))
    if text == '' then
      client.say('nothing is written yet')
      return
    end
    M.remember(text)
    -- `:wq` closes the window by itself, and a write must not wipe its own buffer.
    vim.bo[buffer].modified = false
    vim.schedule(function()
      close()
      send(text)
    end)
  end

  local texts, draft = M.history(), nil
  local at = #texts + 1
  local function show(by)
    local to = at + by
    if to < 1 or to > #texts + 1 then
      return
    end
    if at == #texts + 1 then
      draft = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
    end
    at = to
    local lines = vim.split(texts[at] or draft, '\n')
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
    local row = by < 0 and 1 or #lines
    vim.api.nvim_win_set_cursor(window, { row, #lines[row] })
  end
  --- At the edge of the text the key goes through the history, else it moves the cursor.
  local function arrow(key, edge, by)
    vim.keymap.set({ 'n', 'i' }, key, function()
      if vim.fn.pumvisible() == 0 and vim.api.nvim_win_get_cursor(window)[1] == edge() then
        show(by)
      else
        vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(key, true, true, true), 'ni', false)
      end
    end, { buffer = buffer })
  end
  arrow('<Up>', function()
    return 1
  end, -1)
  arrow('<Down>', function()
    return vim.api.nvim_buf_line_count(buffer)
  end, 1)
  vim.keymap.set({ 'n', 'i' }, '<C-s>', submit, { buffer = buffer })
  vim.keymap.set('n', 'q', close, { buffer = buffer, nowait = true })
  vim.api.nvim_create_autocmd('BufWriteCmd', { buffer = buffer, callback = submit })
  vim.cmd.startinsert()
end

return M
