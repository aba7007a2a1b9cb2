--- A run whose model could not be asked is no dead end: its task is kept, and `:Starling fix` offers what helps.
local client = require('starling.client')
local options = require('starling.options')
local M = {}

--- The last `starling/remedy`: run, task, message, remedy.
M.last = nil ---@type table?
--- How far a download is: bytes, total.
M.download = nil ---@type table?

local TRY_AGAIN, MODEL, KEY = 'Try again', 'Choose a model…', 'Set an API key…'

--- `starling/remedy`
function M.offer(params)
  M.last = params
  local reason = vim.split(vim.trim(params.message), '\n')[1]
  local text = ('the task is kept, `:Starling fix` offers what helps: %s'):format(reason)
  -- A longer line waits for a key.
  local room = vim.o.columns * vim.o.cmdheight - 25
  if vim.fn.strchars(text) > room then
    text = vim.fn.strcharpart(text, 0, room) .. '…'
  end
  client.say(text, vim.log.levels.WARN)
end

--- `starling/download`
function M.progress(params)
  M.download = params.bytes < params.total and params or nil
end

--- For a status line: how far the weights are.
function M.status()
  local download = M.download
  if not download or download.total == 0 then
    return ''
  end
  return ('downloads the model, %d %%'):format(math.floor(100 * download.bytes / download.total))
end

--- Runs the task again as soon as the server is there with other settings.
local function after_restart(task)
  if client.restart() then
    client.execute('starling.run', { task = task }, function()
      require('starling.state').refresh()
    end)
  end
end

local function choose_model(remedy)
  local now = options.values.model
  vim.ui.input({
    prompt = 'Model (openai:MODEL, a name from config.toml, gguf:PATH, local): ',
    default = now ~= '' and now or 'openai:',
  }, function(model)
    if model and vim.trim(model) ~= '' then
      options.values.model, client.model = vim.trim(model), nil
      after_restart(remedy.task)
    end
  end)
end

local function set_key(remedy)
  vim.ui.input({ prompt = 'The environment variable that holds the key: ', default = 'OPENAI_API_KEY' }, function(name)
    name = name and vim.trim(name) or ''
    if name == '' then
      return
    end
    local key = vim.fn.inputsecret(('The value of %s (kept until Neovim ends): '):format(name))
    if key ~= '' then
      options.values.environment[name] = key
      after_restart(remedy.task)
    end
  end)
end

local function again(remedy, download)
  client.execute('starling.retry', { run = remedy.run, download = download or nil }, function()
    require('starling.state').refresh()
  end)
end

--- Offers what helps against the last failure.
function M.fix()
  local remedy = M.last
  if not remedy then
    client.say('there is nothing to fix; `:Starling again` begins the last task anew')
    return
  end
  local choices = { TRY_AGAIN, MODEL, KEY }
  if remedy.remedy == 'download' then
    table.insert(choices, 1, ('Download (%.1f GB)'):format(remedy.bytes / 1e9))
  elseif remedy.remedy == 'key' then
    choices = { KEY, TRY_AGAIN, MODEL }
  elseif remedy.remedy == 'model' then
    choices = { MODEL, KEY, TRY_AGAIN }
  end
  vim.ui.select(choices, { prompt = 'Starling: ' .. remedy.message, kind = 'starling' }, function(choice)
    if choice == MODEL then
      choose_model(remedy)
    elseif choice == KEY then
      set_key(remedy)
    elseif choice then
      again(remedy, choice ~= TRY_AGAIN)
    end
  end)
end

return M
