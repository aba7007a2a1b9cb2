--- `:Starling WORDS`, the <Plug> maps, and the commands that lenses and code actions name.
local client = require('starling.client')
local state = require('starling.state')
local M = {}

--- Calls `done` with the text, asked for where there is none.
local function text_or_ask(text, prompt, done)
  if vim.trim(text) ~= '' then
    done(text)
    return
  end
  vim.ui.input({ prompt = prompt }, function(given)
    if given and vim.trim(given) ~= '' then
      done(given)
    end
  end)
end

--- The same for a text of several lines, written in a float.
local function text_or_compose(text, title, done)
  if vim.trim(text) ~= '' then
    done(text)
  else
    require('starling.compose').open(title, done)
  end
end

local function begin(argument)
  client.execute('starling.run', argument, function(reply)
    M.last = reply.run
    state.refresh()
  end)
end

--- The argument of one of our commands at the cursor, as the server's code actions have it.
local function at_cursor(command, done)
  local at = vim.lsp.get_clients({ name = 'starling', bufnr = 0 })[1]
  if not at then
    client.say('no project is open here', vim.log.levels.ERROR)
    return
  end
  local params = vim.lsp.util.make_range_params(0, at.offset_encoding)
  params.context = { diagnostics = {} }
  client.request('textDocument/codeAction', params, function(actions)
    for _, action in ipairs(actions or {}) do
      if action.command.command == command then
        done(action.command.arguments[1])
        return
      end
    end
    client.say('there is no symbol here', vim.log.levels.WARN)
  end)
end

local function review()
  return require('starling.review')
end

--- Does something with the proposal that is meant.
local function with_meant(action)
  local origin = vim.api.nvim_get_current_buf()
  state.now(function()
    local meant = review().meant(origin)
    if meant then
      action(meant)
    else
      client.say('nothing waits for review')
    end
  end)
end

--- The run that is meant: the one that goes on, or the last.
local function meant_run(done)
  local runs = state.going()
  if #runs == 0 then
    runs = state.runs
  end
  if #runs <= 1 then
    local run = runs[1] and runs[1].run or M.last
    if run then
      done(run)
    else
      client.say('there is no run')
    end
    return
  end
  local title = function(run)
    return vim.split(run.task, '\n')[1]
  end
  vim.ui.select(runs, { prompt = 'Which run?', format_item = title, kind = 'starling' }, function(run)
    if run then
      done(run.run)
    end
  end)
end

local function change(about, text)
  text_or_compose(text, 'Change ' .. about.symbol, function(task)
    begin({ task = task, begin = { about.symbol } })
  end)
end

local function jump(by)
  with_meant(function(meant)
    review().open(review().beside(meant, by))
  end)
end

local all = {
  run = function(text)
    text_or_compose(text, 'Task', function(task)
      begin({ task = task })
    end)
  end,
  change = function(text)
    at_cursor('starling.client.change', function(about)
      change(about, text)
    end)
  end,
  ask = function(text)
    text_or_compose(text, 'Question', function(question)
      require('starling.ask').ask({ question = question })
    end)
  end,
  review = function()
    with_meant(review().open)
  end,
  --- Nothing is accepted that was not shown: without an open review the first `:Starling accept` opens it.
  accept = function()
    with_meant(function(about)
      if review().shows(about) then
        client.execute('starling.accept', vim.tbl_extend('force', { version = review().version() }, about))
      else
        review().open(about)
      end
    end)
  end,
  --- The user's own version of it.
  edit = function()
    with_meant(require('starling.edit').open)
  end,
  --- The task of the last run once more.
  again = function()
    meant_run(function(run)
      client.execute('starling.retry', { run = run }, function(reply)
        M.last = reply.run
        state.refresh()
      end)
    end)
  end,
  acceptall = function()
    client.execute('starling.acceptAll', vim.empty_dict(), function(reply)
      client.say(('%d accepted'):format(#reply.accepted))
    end)
  end,
  reject = function(text)
    with_meant(function(about)
      text_or_ask(text, 'Why? ', function(reason)
        client.execute('starling.reject', vim.tbl_extend('force', about, { reason = reason }))
      end)
    end)
  end,
  steer = function(text)
    meant_run(function(run)
      text_or_ask(text, 'To all agents: ', function(words)
        client.execute('starling.steer', { run = run, text = words })
      end)
    end)
  end,
  stop = function()
    meant_run(function(run)
      client.execute('starling.cancel', { run = run })
    end)
  end,
  undo = function(text)
    meant_run(function(run)
      client.execute('starling.undo', { run = run, proposal = tonumber(text) })
    end)
  end,
  list = function()
    state.now(require('starling.quickfix').open)
  end,
  runs = function()
    require('starling.runs').open()
  end,
  next = function()
    jump(1)
  end,
  prev = function()
    jump(-1)
  end,
  fix = function()
    require('starling.remedy').fix()
  end,
  --- The model of the runs and questions that begin from now on.
  model = function(text)
    require('starling.model').choose(vim.trim(text))
  end,
  restart = function()
    client.restart()
  end,
}

--- What `:Starling` was given.
function M.run(args)
  local name, text = args.args:match('^%s*(%S*)%s*(.*)$')
  if name == '' then
    name = #state.waiting() > 0 and 'review' or 'run'
  end
  M.call(name, text)
end

function M.call(name, text)
  local command = all[name]
  if not command then
    local known = vim.tbl_keys(all)
    table.sort(known)
    client.say(('there is no `:Starling %s`; there are %s'):format(name, table.concat(known, ', ')), vim.log.levels.ERROR)
    return
  end
  if client.need() then
    command(text)
  end
end

function M.complete(lead, line)
  if line:match('^%S+%s+%S*$') == nil then
    return {}
  end
  local names = vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, vim.tbl_keys(all))
  table.sort(names)
  return names
end

--- A command that a lens or a code action names.
function M.client(name, about)
  local what = name:match('[^.]+$')
  if what == 'change' then
    change(about, '')
  elseif what == 'ask' then
    text_or_compose('', 'Ask about ' .. about.symbol, function(question)
      require('starling.ask').ask({ question = question, symbol = about.symbol })
    end)
  elseif what == 'reject' then
    review().reject(about)
  elseif what == 'steer' then
    review().steer(about)
  else
    review().open(about)
  end
end

return M
