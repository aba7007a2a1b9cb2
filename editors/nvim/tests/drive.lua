--- A real Neovim in a terminal, driven by keys and read from its screen, as a person does.
local M = {}

local WAIT = 30000

--- Starts it on a file.
---@param options { nvim: string, init: string, folder: string, file: string, said: string, environment: table }
function M.start(options)
  vim.o.columns, vim.o.lines = 130, 42
  local buffer = vim.api.nvim_create_buf(false, true)
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = 'editor', width = 120, height = 36, row = 0, col = 0,
  })
  local self = { buffer = buffer, window = window, said = options.said, heard = 1 }
  vim.api.nvim_buf_call(buffer, function()
    self.job = vim.fn.termopen({ options.nvim, '--clean', '-n', '-u', options.init, options.file }, {
      cwd = options.folder,
      env = options.environment,
    })
  end)
  assert(self.job > 0, 'the terminal does not start')
  return setmetatable(self, { __index = M })
end

function M:screen()
  return table.concat(vim.api.nvim_buf_get_lines(self.buffer, 0, -1, false), '\n')
end

function M:keys(keys)
  vim.fn.chansend(self.job, (vim.api.nvim_replace_termcodes(keys, true, true, true)))
end

--- All messages so far.
function M:told()
  local file = io.open(self.said)
  local said = file and file:read('*a') or ''
  if file then
    file:close()
  end
  return said
end

--- Ends the test with what the screen shows, and what was said before.
function M:fail(what)
  error(('%s\n%s\n--- messages\n%s'):format(what, self:screen(), self:told()), 3)
end

--- Waits until something holds; a long message waits for a key meanwhile, as a person would press it.
function M:waits(fact)
  local pressed = 0
  return vim.wait(WAIT, function()
    if fact() then
      return true
    end
    if self:screen():find('Press ENTER', 1, true) and vim.uv.now() - pressed > 500 then
      pressed = vim.uv.now()
      self:keys('<CR>')
    end
    return false
  end, 20)
end

--- Waits until the screen shows a text.
function M:sees(text)
  local found = self:waits(function()
    return self:screen():find(text, 1, true)
  end)
  if not found then
    self:fail(('the screen never shows `%s`:'):format(text))
  end
end

--- Waits until a message with a text has been given since the last one. The next message may take it
--- from the screen at once.
function M:hears(text)
  local heard = self:waits(function()
    local _, last = self:told():find(text, self.heard, true)
    self.heard = last and last + 1 or self.heard
    return last
  end)
  if not heard then
    self:fail(('no message says `%s`:'):format(text))
  end
end

--- Waits until it does not show it any more.
function M:no_longer_sees(text)
  local gone = vim.wait(WAIT, function()
    return self:screen():find(text, 1, true) == nil
  end, 20)
  if not gone then
    self:fail(('the screen still shows `%s`:'):format(text))
  end
end

--- Waits until a fact holds.
function M:until_so(what, fact)
  if not self:waits(fact) then
    self:fail('never so: ' .. what)
  end
end

--- The process ids of the children of the editor whose program has a name.
function M:children(name)
  local found = {}
  local function look(pid)
    local list = io.open(('/proc/%d/task/%d/children'):format(pid, pid))
    for child in (list and list:read('*a') or ''):gmatch('%d+') do
      local comm = io.open(('/proc/%s/comm'):format(child))
      if comm and vim.trim(comm:read('*a')) == name then
        table.insert(found, tonumber(child))
      end
      look(tonumber(child))
    end
  end
  look(vim.fn.jobpid(self.job))
  return found
end

function M:stop()
  vim.fn.jobstop(self.job)
  vim.fn.jobwait({ self.job }, 5000)
end

return M
