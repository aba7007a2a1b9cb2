--- The connection to the server.
local bridge = require('starling.bridge')
local offers = require('starling.offers')
local options = require('starling.options')
local M = {}

--- How long the server may take to say hello.
local START = 5000

--- What this plugin does itself; see docs/protocol.md.
M.commands = {
  'starling.client.change',
  'starling.client.ask',
  'starling.client.reject',
  'starling.client.steer',
  'starling.client.diff',
  'starling.client.why',
}

local function capabilities()
  return vim.tbl_deep_extend('force', vim.lsp.protocol.make_client_capabilities(), {
    workspace = {
      codeLens = { refreshSupport = true },
      -- Neovim takes versioned edits and does not say so.
      workspaceEdit = { documentChanges = true },
    },
    experimental = { starling = { commands = M.commands, bridge = bridge.providers } },
  })
end

--- Why an edit does not fit the buffers any more; nil when it does.
local function stale(changes)
  for _, change in ipairs(changes) do
    local document = change.textDocument
    if document and type(document.version) == 'number' then
      local buffer = vim.uri_to_bufnr(document.uri)
      if vim.lsp.util.buf_versions[buffer] ~= document.version then
        return vim.api.nvim_buf_get_name(buffer) .. ' has changed since'
      end
    end
  end
end

--- Whether nobody sees a buffer, and nothing in it waits to be saved.
local function is_out_of_sight(buffer)
  local loaded = vim.api.nvim_buf_is_loaded(buffer)
  return not loaded or (not vim.bo[buffer].modified and #vim.fn.win_findbuf(buffer) == 0)
end

--- Writes files that an edit changed out of sight, so that no hidden buffer is left changed.
local function save(uris)
  for _, uri in ipairs(uris) do
    local buffer = vim.uri_to_bufnr(uri)
    if vim.api.nvim_buf_is_loaded(buffer) then
      vim.api.nvim_buf_call(buffer, function()
        vim.cmd('silent keepalt write ++p')
      end)
    end
  end
end

--- Applies an edit of the server as one step that can be undone.
local function apply_edit(_, params, ctx)
  local changes = params.edit.documentChanges or {}
  local why = stale(changes)
  if why then
    return { applied = false, failureReason = why }
  end
  -- Neovim lists annotations on the screen, and waits for a key.
  params.edit.changeAnnotations = nil
  for _, change in ipairs(changes) do
    for _, edit in ipairs(change.edits or {}) do
      edit.annotationId = nil
    end
  end
  local hidden = {}
  for _, change in ipairs(changes) do
    local uri = change.textDocument and change.textDocument.uri
    if uri and is_out_of_sight(vim.uri_to_bufnr(uri)) then
      table.insert(hidden, uri)
    end
  end
  local client = assert(vim.lsp.get_client_by_id(ctx.client_id))
  local done, failure = pcall(vim.lsp.util.apply_workspace_edit, params.edit, client.offset_encoding)
  if not done then
    return { applied = false, failureReason = tostring(failure) }
  end
  if options.values.save_hidden then
    save(hidden)
  end
  return { applied = true }
end

local function handlers()
  local state = require('starling.state')
  local own = {
    ['starling/event'] = function(_, params)
      state.event(params)
    end,
    ['starling/intent'] = function(_, params)
      state.intent(params)
    end,
    ['starling/status'] = function(_, params)
      state.set_status(params)
    end,
    ['starling/answer'] = function(_, params)
      require('starling.ask').news(params)
    end,
    ['starling/undone'] = function(_, params)
      state.undone(params)
    end,
    ['starling/remedy'] = function(_, params)
      require('starling.remedy').offer(params)
    end,
    ['starling/download'] = function(_, params)
      require('starling.remedy').progress(params)
      state.refresh()
    end,
    ['workspace/applyEdit'] = apply_edit,
    ['workspace/codeLens/refresh'] = function(_, _, ctx)
      local client = vim.lsp.get_client_by_id(ctx.client_id)
      if client then
        offers.refresh_all(client)
      end
      return vim.NIL
    end,
  }
  return vim.tbl_extend('error', own, bridge.handlers())
end

--- The command with its program as an absolute path. A name is looked for in absolute places of PATH
--- outside the current directory, which may be anyone's.
local function command()
  local words = vim.deepcopy(options.values.cmd)
  if options.values.model ~= '' then
    vim.list_extend(words, { '--model', options.values.model })
  end
  local cwd, home = vim.uv.cwd() .. '/', vim.uv.os_homedir() .. '/'
  local own = not vim.startswith(home, cwd)
  if vim.fn.has('win32') == 1 or words[1]:find('/', 1, true) then
    return words
  end
  for _, place in ipairs(vim.split(vim.env.PATH or '', ':', { plain = true })) do
    local outside = vim.startswith(place, '/') and not (own and vim.startswith(place .. '/', cwd))
    local path = place .. '/' .. words[1]
    if outside and vim.fn.executable(path) == 1 then
      words[1] = path
      return words
    end
  end
  words[1] = vim.fs.joinpath(vim.uv.os_homedir(), '.cargo', 'bin', words[1])
  return words
end

--- The configuration of the client, as |vim.lsp.config| and |vim.lsp.start| take it.
function M.config()
  for _, name in ipairs(M.commands) do
    vim.lsp.commands[name] = function(command)
      require('starling.commands').client(name, command.arguments[1])
    end
  end
  return {
    name = 'starling',
    cmd = command(),
    cmd_env = options.values.environment,
    filetypes = options.values.filetypes,
    root_markers = options.values.root_markers,
    capabilities = capabilities(),
    handlers = handlers(),
    on_attach = offers.attach,
    on_init = function()
      require('starling.state').connected()
    end,
    on_exit = function(code, signal)
      vim.schedule(function()
        require('starling.state').gone()
        if vim.v.exiting == vim.NIL and (code ~= 0 or signal ~= 0) then
          M.revive()
        end
      end)
    end,
  }
end

local function start(buffer)
  local config = M.config()
  config.root_dir = vim.fs.root(buffer, config.root_markers)
  if not config.root_dir then
    local name = vim.api.nvim_buf_get_name(buffer)
    config.root_dir = name ~= '' and vim.fs.dirname(name) or vim.uv.cwd()
  end
  return vim.lsp.start(config, { bufnr = buffer })
end

--- Starts it for all open buffers of its file types.
function M.attach()
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.tbl_contains(options.values.filetypes, vim.bo[buffer].filetype) then
      start(buffer)
    end
  end
end

local deaths = {}

--- A server that died is started again, unless it dies and dies.
function M.revive()
  local now = vim.uv.now()
  deaths = vim.tbl_filter(function(death)
    return now - death < 180000
  end, deaths)
  table.insert(deaths, now)
  vim.defer_fn(function()
    if #deaths > 3 then
      M.say('the server dies again and again: see :checkhealth starling, then `:Starling restart`', vim.log.levels.ERROR)
      return
    end
    M.attach()
    M.say('the server died and was started again; nothing that waits is lost', vim.log.levels.WARN)
  end, 300)
end

--- Starts it anew.
function M.restart()
  deaths = {}
  for _, client in ipairs(vim.lsp.get_clients({ name = 'starling' })) do
    if vim.fn.has('nvim-0.11') == 1 then
      client:stop()
    else
      client.stop()
    end
  end
  vim.wait(START, function()
    return #vim.lsp.get_clients({ name = 'starling' }) == 0
  end, 20)
  M.attach()
  return M.need()
end

--- Starts the server for buffers of its file types.
function M.enable()
  if vim.fn.has('nvim-0.11') == 1 then
    vim.lsp.config('starling', M.config())
    vim.lsp.enable('starling')
    return
  end
  local group = vim.api.nvim_create_augroup('starling', {})
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    pattern = options.values.filetypes,
    callback = function(args)
      start(args.buf)
    end,
  })
  M.attach()
end

--- The client of a buffer, or any; nil when there is none.
---@return vim.lsp.Client?
function M.get()
  return vim.lsp.get_clients({ name = 'starling', bufnr = 0 })[1] or vim.lsp.get_clients({ name = 'starling' })[1]
end

--- The same; where there is none, it is started for the current buffer.
function M.need()
  local client = M.get()
  if not client then
    if vim.fn.executable(command()[1]) == 0 then
      M.say(('`%s` is not to be found: see :checkhealth starling'):format(options.values.cmd[1]), vim.log.levels.ERROR)
      return nil
    end
    start(vim.api.nvim_get_current_buf())
    -- It says hello in milliseconds.
    vim.wait(START, function()
      client = M.get()
      return client ~= nil
    end, 10)
  end
  if not client then
    M.say('the server does not start: see :checkhealth starling', vim.log.levels.ERROR)
  end
  return client
end

function M.say(message, level)
  vim.notify('Starling: ' .. message, level or vim.log.levels.INFO)
end

--- Sends a request; what goes wrong is said, `done` gets what goes right.
function M.request(method, params, done)
  local client = M.need()
  if not client then
    return
  end
  local function answered(err, result)
    if err then
      M.say(err.message or vim.inspect(err), vim.log.levels.ERROR)
    elseif done then
      done(result)
    end
  end
  if vim.fn.has('nvim-0.11') == 1 then
    client:request(method, params, answered)
  else
    client.request(method, params, answered)
  end
end

--- Sends a request and waits for its answer; nil when none comes in time.
function M.wait(method, params, milliseconds)
  local client = M.get()
  if not client then
    return nil
  end
  local reply
  if vim.fn.has('nvim-0.11') == 1 then
    reply = client:request_sync(method, params, milliseconds, 0)
  else
    reply = client.request_sync(method, params, milliseconds, 0)
  end
  return reply and reply.result
end

--- The model that `:Starling model` chose; nil: the one that the server was started with.
M.model = nil

--- Commands that ask a model.
local WITH_MODEL = { ['starling.run'] = true, ['starling.ask'] = true, ['starling.retry'] = true }

--- Executes a command of the server.
function M.execute(command, argument, done)
  if M.model and WITH_MODEL[command] then
    argument = vim.tbl_extend('keep', argument, { model = M.model })
  end
  M.request('workspace/executeCommand', { command = command, arguments = { argument } }, done)
end

return M
