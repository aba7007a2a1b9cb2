--- Starling in Neovim: agents work on symbols, you review what they propose.
local M = {}

--- Starts Starling for the files that are opened from now on, and for the current one.
---@param opts? starling.Options
function M.setup(opts)
  require('starling.options').set(opts)
  if vim.fn.has('nvim-0.10') == 0 then
    vim.notify('Starling needs Neovim 0.10 or newer', vim.log.levels.ERROR)
    return
  end
  require('starling.client').enable()
end

--- For a status line: what goes on, empty when nothing does.
---@return string
function M.status()
  local download = require('starling.remedy').status()
  return download ~= '' and download or require('starling.state').status.text
end

--- How many proposals and intents wait for you.
---@return integer
function M.waiting()
  return require('starling.state').status.waiting
end

return M
