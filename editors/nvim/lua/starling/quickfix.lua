--- What waits for review as a quickfix list: an entry for each proposal, at its place.
local client = require('starling.client')
local state = require('starling.state')
local M = {}

local function items(shown)
  local found = {}
  for _, file in ipairs(shown.files) do
    local range = file.ranges[1]
    table.insert(found, {
      filename = vim.uri_to_fname(file.uri),
      lnum = range and range.start.line + 1 or 1,
      col = 1,
      text = ('#%d %s: %s'):format(shown.proposal, shown.symbol, vim.split(shown.reason, '\n')[1]),
      type = file.conflict ~= vim.NIL and 'W' or 'I',
    })
  end
  return found
end

--- Fills the list and opens it.
function M.open()
  local waiting = state.waiting()
  local list, left = {}, #waiting
  local function done()
    vim.fn.setqflist({}, ' ', { title = 'Starling: what waits for review', items = list })
    if #list == 0 then
      client.say('nothing waits for review')
    else
      vim.cmd('botright copen')
    end
  end
  if left == 0 then
    done()
  end
  for _, one in ipairs(waiting) do
    client.request('starling/proposal', { run = one.run, proposal = one.proposal.proposal }, function(shown)
      vim.list_extend(list, items(shown))
      left = left - 1
      if left == 0 then
        done()
      end
    end)
  end
end

return M
