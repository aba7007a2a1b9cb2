--- What can be set, and its defaults.
local M = {}

---@class starling.Options
---@field cmd? string[] How the server is started.
---@field model? string The model, as `starling --model` takes it; empty: as the configuration says.
---@field environment? table<string, string> Environment variables of the server, for example keys of endpoints.
---@field filetypes? string[] Which buffers it is for.
---@field root_markers? string[] What the folder of a project holds.
---@field notify? boolean Tell when something waits for review and when a run ends.
---@field lenses? boolean Show at the ends of lines what is offered on their symbols.
---@field save_hidden? boolean Save files that an accepted change altered out of sight.
local defaults = {
  cmd = { 'starling', 'lsp' },
  model = '',
  environment = {},
  filetypes = { 'python' },
  root_markers = { '.starling', 'pyproject.toml', 'setup.py', 'setup.cfg', '.git' },
  notify = true,
  lenses = true,
  save_hidden = true,
}

M.values = vim.deepcopy(defaults)

---@param opts? starling.Options
function M.set(opts)
  for key, value in pairs(opts or {}) do
    local default = defaults[key]
    if default == nil then
      local known = vim.tbl_keys(defaults)
      table.sort(known)
      error(('starling.setup: there is no option `%s`; there are %s'):format(key, table.concat(known, ', ')), 0)
    end
    if type(value) ~= type(default) then
      error(('starling.setup: `%s` is a %s, not a %s'):format(key, type(default), type(value)), 0)
    end
  end
  M.values = vim.tbl_extend('force', vim.deepcopy(defaults), opts or {})
end

return M
