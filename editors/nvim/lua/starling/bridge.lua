--- Asks the other servers of a buffer on behalf of Starling, which cannot; see docs/protocol.md.
local M = {}

M.providers = { 'definition', 'references', 'implementation', 'diagnostics' }

--- How long other servers have: Starling waits two seconds, and has others to ask.
local WAIT = 1800
local CONTENT_MODIFIED = -32801

--- How many units of an encoding a character takes that begins with a byte.
local function units(byte, encoding)
  if encoding == 'utf-8' then
    return byte < 0x80 and 1 or byte < 0xE0 and 2 or byte < 0xF0 and 3 or 4
  end
  return encoding == 'utf-16' and byte >= 0xF0 and 2 or 1
end

--- A column counted in one encoding, counted in another.
local function recount(line, column, from, to)
  if from == to then
    return column
  end
  local old, new = 0, 0
  for _, start in ipairs(vim.str_utf_pos(line)) do
    if old >= column then
      break
    end
    local byte = line:byte(start)
    old, new = old + units(byte, from), new + units(byte, to)
  end
  return new
end

--- The lines of a file, as Neovim has them or as they are on disk.
local function lines_of(uri, known)
  if not known[uri] then
    local buffer = vim.fn.bufnr(vim.uri_to_fname(uri))
    if buffer ~= -1 and vim.api.nvim_buf_is_loaded(buffer) then
      known[uri] = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
    else
      local read, lines = pcall(vim.fn.readfile, vim.uri_to_fname(uri))
      known[uri] = read and lines or {}
    end
  end
  return known[uri]
end

--- A place in an answer of another server, as Starling counts.
local function location(place, from, to, known)
  local uri = place.targetUri or place.uri
  local range = place.targetSelectionRange or place.range
  local lines = vim.startswith(uri, 'file:') and lines_of(uri, known) or {}
  local function at(position)
    local line = lines[position.line + 1] or ''
    return { line = position.line, character = recount(line, position.character, from, to) }
  end
  return { uri = uri, range = { start = at(range.start), ['end'] = at(range['end']) } }
end

--- The buffer of a question; nil and an error when it is not the one that was meant.
local function buffer_of(params)
  local buffer = vim.fn.bufnr(vim.uri_to_fname(params.textDocument.uri))
  if buffer == -1 or not vim.api.nvim_buf_is_loaded(buffer) then
    return nil
  end
  local version = vim.lsp.util.buf_versions[buffer]
  if version ~= params.version and params.version ~= vim.NIL then
    return nil, { code = CONTENT_MODIFIED, message = 'the text has changed since' }
  end
  return buffer
end

local function others(buffer, method, own)
  return vim.tbl_filter(function(client)
    return client.id ~= own
  end, vim.lsp.get_clients({ bufnr = buffer, method = method }))
end

local function request(client, method, params, done, buffer)
  if vim.fn.has('nvim-0.11') == 1 then
    return client:request(method, params, done, buffer)
  end
  return client.request(method, params, done, buffer)
end

--- Asks all other servers of a buffer about a position. Yields until they have answered.
local function places(provider)
  local method = 'textDocument/' .. provider
  return function(_, params, ctx)
    local buffer, modified = buffer_of(params)
    if not buffer then
      return vim.NIL, modified
    end
    local asked = others(buffer, method, ctx.client_id)
    local own = vim.lsp.get_client_by_id(ctx.client_id).offset_encoding
    local line = vim.api.nvim_buf_get_lines(buffer, params.position.line, params.position.line + 1, false)[1] or ''
    local waiting, found, known, co, over = #asked, nil, {}, coroutine.running(), false
    local function finish()
      if not over then
        over = true
        coroutine.resume(co)
      end
    end
    for _, client in ipairs(asked) do
      local question = {
        textDocument = params.textDocument,
        position = {
          line = params.position.line,
          character = recount(line, params.position.character, own, client.offset_encoding),
        },
        context = provider == 'references' and { includeDeclaration = false } or nil,
      }
      local sent = request(client, method, question, function(failed, answer)
        if not failed and type(answer) == 'table' and not over then
          found = found or {}
          for _, place in ipairs(vim.islist(answer) and answer or { answer }) do
            table.insert(found, location(place, client.offset_encoding, own, known))
          end
        end
        waiting = waiting - 1
        if waiting == 0 then
          vim.schedule(finish)
        end
      end, buffer)
      waiting = sent and waiting or waiting - 1
    end
    if waiting > 0 then
      vim.defer_fn(finish, WAIT)
      coroutine.yield()
    end
    over = true
    return found or vim.NIL
  end
end

--- When diagnostics of a buffer came last, by its changes.
local reported = {}

local function diagnostics(_, params, ctx)
  local buffer, modified = buffer_of(params)
  if not buffer or reported[buffer] ~= vim.api.nvim_buf_get_changedtick(buffer) then
    return vim.NIL, modified
  end
  local encoding = vim.lsp.get_client_by_id(ctx.client_id).offset_encoding
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local function at(line, column)
    return { line = line, character = recount(lines[line + 1] or '', column, 'utf-8', encoding) }
  end
  return vim.tbl_map(function(one)
    return {
      range = { start = at(one.lnum, one.col), ['end'] = at(one.end_lnum or one.lnum, one.end_col or one.col) },
      severity = one.severity,
      message = one.message,
      source = one.source,
      code = one.code,
    }
  end, vim.diagnostic.get(buffer))
end

--- What answers Starling's requests.
function M.handlers()
  vim.api.nvim_create_autocmd('DiagnosticChanged', {
    group = vim.api.nvim_create_augroup('starling.bridge', {}),
    callback = function(args)
      reported[args.buf] = vim.api.nvim_buf_get_changedtick(args.buf)
    end,
  })
  return {
    ['starling/definition'] = places('definition'),
    ['starling/references'] = places('references'),
    ['starling/implementation'] = places('implementation'),
    ['starling/diagnostics'] = diagnostics,
  }
end

return M
