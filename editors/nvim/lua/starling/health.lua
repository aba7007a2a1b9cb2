--- :checkhealth starling
local M = {}

local health = vim.health or require('health')
-- Neovim 0.7 to 0.9 have other names.
local start = health.start or health.report_start
local ok = health.ok or health.report_ok
local warn = health.warn or health.report_warn
local fail = health.error or health.report_error

local function server()
  local options = require('starling.options').values
  local program = options.cmd[1]
  if vim.fn.executable(program) == 0 then
    fail(('`%s` is not to be found'):format(program), {
      'Install it, and put it into your PATH.',
      "Or name it: require('starling').setup({ cmd = { '/path/to/starling', 'lsp' } })",
    })
    return
  end
  local answer = vim.fn.system({ program, '--version' })
  if vim.v.shell_error == 0 then
    ok(('%s: %s'):format(vim.fn.exepath(program), vim.trim(answer)))
  else
    fail(('`%s --version` fails: %s'):format(program, vim.trim(answer)))
  end
end

local function clients()
  local running = vim.lsp.get_clients({ name = 'starling' })
  if #running == 0 then
    warn('no server runs: open a file of a project, or give a command', {
      "require('starling').setup() starts it for the file types of its options",
    })
  end
  for _, client in ipairs(running) do
    local root = client.root_dir or client.config.root_dir
    ok(('a server runs in %s, positions in %s'):format(root or '(no folder)', client.offset_encoding))
  end
end

function M.check()
  start('Starling')
  if vim.fn.has('nvim-0.10') == 0 then
    fail('Neovim 0.10 or newer is needed')
    return
  end
  ok('Neovim is new enough')
  server()
  clients()
  ok('models, sandbox and language servers are checked by `starling doctor`')
end

return M
