-- Commands and <Plug> maps. Nothing is started before a file of a project is opened, or a command given.
if vim.g.loaded_starling then
  return
end
vim.g.loaded_starling = true

if vim.fn.has('nvim-0.10') == 0 then
  local message = 'Starling needs Neovim 0.10 or newer; this is older. Update Neovim, or use another editor.'
  vim.api.nvim_create_user_command('Starling', function()
    vim.api.nvim_echo({ { message, 'ErrorMsg' } }, true, {})
  end, { nargs = '*', range = true })
  return
end

vim.api.nvim_create_user_command('Starling', function(args)
  require('starling.commands').run(args)
end, {
  nargs = '*',
  range = true,
  desc = 'Starling: give agents a task, review what they propose, ask about the code',
  complete = function(lead, line)
    return require('starling.commands').complete(lead, line)
  end,
})

for _, name in ipairs({
  'run', 'change', 'ask', 'review', 'accept', 'acceptall', 'again', 'fix', 'reject', 'steer', 'stop', 'undo', 'list',
  'runs', 'next', 'prev', 'model',
}) do
  vim.keymap.set({ 'n', 'x' }, ('<Plug>(starling-%s)'):format(name), function()
    require('starling.commands').call(name, '')
  end, { desc = 'Starling: ' .. name })
end
