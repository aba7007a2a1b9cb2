--- The choice of a model.
local client = require('starling.client')
local options = require('starling.options')
local M = {}

local function use(name)
  client.model = name
  client.say(('the next run and the next question use %s; what is in progress keeps its model'):format(name))
end

local function ask_name(given)
  vim.ui.input({ prompt = 'Model (openai:MODEL, gguf:PATH, local or a configured name): ', default = given }, function(name)
    if name and vim.trim(name) ~= '' then
      use(vim.trim(name))
    end
  end)
end

--- Uses a model by its name; without one the user picks it from a list.
function M.choose(name)
  if name ~= '' then
    use(name)
    return
  end
  client.request('starling/models', vim.empty_dict(), function(reply)
    local present = client.model or (options.values.model ~= '' and options.values.model) or reply.chosen
    local choices = {}
    local function add(label, act, is_present)
      table.insert(choices, { label = label .. (is_present and ' (in use)' or ''), act = act })
    end
    local is_listed = false
    for _, model in ipairs(reply.models) do
      is_listed = is_listed or model.name == present
      add(('%s: %s'):format(model.name, model.detail), function()
        use(model.name)
      end, model.name == present)
    end
    if type(present) == 'string' and not is_listed then
      add(present, function()
        use(present)
      end, true)
    end
    for _, key in ipairs(reply.keys) do
      if type(key.prefix) == 'string' then
        add(('%s…: %s is set'):format(key.prefix, key.variable), function()
          ask_name(key.prefix)
        end)
      end
    end
    add('other…', function()
      ask_name('')
    end)
    vim.ui.select(choices, {
      prompt = 'Which model?',
      kind = 'starling',
      format_item = function(choice)
        return choice.label
      end,
    }, function(choice)
      if choice then
        choice.act()
      end
    end)
  end)
end

return M
