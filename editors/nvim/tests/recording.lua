--- A recorded model: what the scout, the agents and the reader of questions say, in their order.
local M = {}

local function exchange(conversation, role, ordinal, reply)
  reply.model, reply.usage = 'recorded', { prompt = 1, cached = 0, output = 1 }
  reply.cost, reply.calls = 0, 1
  return vim.json.encode({ exchange = {
    conversation = conversation, role = role, ordinal = ordinal,
    prompt = vim.empty_dict and {}, tools = {}, reply = { Ok = reply }, millis = 1,
  } })
end

local function call(tool, arguments)
  return {
    text = '', finish = 'tool_calls',
    tool_calls = { { id = 'c', name = tool, arguments = vim.json.encode(arguments) } },
  }
end

--- Writes it to a file.
function M.write(path)
  local lines = {
    exchange('scout', 'scout', 0, call('wake', { symbols = {
      { symbol = 'price.py::price', why = 'it gives the price' },
      { symbol = 'tax.py::tax', why = 'it gives the tax' },
    } })),
    exchange('agent price.py::price', 'agent', 0, call('propose', {
      reason = 'Twice the price', source = 'def price():\n    return 2\n',
    })),
    exchange('agent price.py::price', 'agent', 1, call('propose', {
      reason = 'Twice what you typed', source = 'def price():\n    return 200\n',
    })),
    exchange('agent tax.py::tax', 'agent', 0, call('propose', {
      reason = 'Twice the tax', source = 'def tax():\n    return 20\n',
    })),
    exchange('agent tax.py::tax', 'agent', 1, call('propose', {
      reason = 'Named, as you wish', source = 'def tax():\n    twice = 20\n    return twice\n',
    })),
    exchange('ask', 'agent', 0, {
      text = 'The price is `1` [price.py:2].\n', finish = 'stop', tool_calls = {},
    }),
  }
  local file = assert(io.open(path, 'w'))
  file:write((table.concat(lines, '\n'):gsub('"tool_calls":{}', '"tool_calls":[]')
    :gsub('"prompt":{}', '"prompt":[]'):gsub('"tools":{}', '"tools":[]')))
  file:close()
end

return M
