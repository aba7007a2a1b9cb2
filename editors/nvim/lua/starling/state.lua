--- How things stand: kept up to date by the server's events, for all views.
local client = require('starling.client')
local options = require('starling.options')
local M = {}

M.status = { text = '', waiting = 0, working = 0 }
--- As `starling/state` answers.
M.runs = {}
local watchers = {}
local asked = false

--- Calls a view on every change, until it answers false.
function M.watch(view)
  table.insert(watchers, view)
end

local function changed()
  watchers = vim.tbl_filter(function(view)
    return view() ~= false
  end, watchers)
  vim.api.nvim_exec_autocmds('User', { pattern = 'StarlingChanged', modeline = false })
  vim.cmd.redrawstatus({ bang = true })
end

--- Asks how things stand now, then goes on.
function M.now(go_on)
  client.request('starling/state', vim.empty_dict(), function(state)
    M.runs = state.runs
    changed()
    go_on()
  end)
end

--- Asks how things stand, once for many events.
function M.refresh()
  if asked or not client.get() then
    return
  end
  asked = true
  vim.defer_fn(function()
    asked = false
    if not client.get() then
      return
    end
    M.now(function() end)
  end, 30)
end

--- Everything that waits for review, oldest first: run, proposal. Of a set only the one that is asked about.
function M.waiting()
  local waiting = {}
  for _, run in ipairs(M.runs) do
    local seen = {}
    for _, proposal in ipairs(run.proposals) do
      if proposal.state == 'waiting' and not seen[proposal.proposal] then
        for _, other in ipairs(proposal.with) do
          seen[other] = true
        end
        table.insert(waiting, { run = run.run, proposal = proposal, task = run.task })
      end
    end
  end
  return waiting
end

--- Runs that go on.
function M.going()
  return vim.tbl_filter(function(run)
    return run.stage ~= 'ended'
  end, M.runs)
end

--- What is to be told: gathered, so that the screen never asks to press a key.
---@type { text?: string, level?: integer, asked?: table }[]
local news = {}

--- What was gathered, in one line: several that wait are named by their symbols alone.
local function gathered()
  local texts, asked = {}, {}
  for _, one in ipairs(news) do
    table.insert(one.asked and asked or texts, one.asked or one.text)
  end
  if #asked == 1 then
    local only = asked[1]
    local reason = vim.split(vim.trim(only.reason), '\n')[1]
    table.insert(texts, ('#%d for %s waits for your review: %s (:Starling review)'):format(
      only.proposal, only.symbol, reason))
  elseif #asked > 1 then
    local symbols = vim.tbl_map(function(one)
      return (one.symbol:gsub('^.*::', ''))
    end, asked)
    table.insert(texts, ('%d proposals wait for your review (:Starling review): %s'):format(
      #asked, table.concat(symbols, ', ')))
  end
  return table.concat(texts, ' · ')
end

local function tell(one)
  if not options.values.notify then
    return
  end
  table.insert(news, one)
  if #news > 1 then
    return
  end
  vim.defer_fn(function()
    local text, highest = gathered(), vim.log.levels.INFO
    for _, each in ipairs(news) do
      highest = math.max(highest, each.level or highest)
    end
    news = {}
    local room = vim.o.columns * vim.o.cmdheight - 25
    if vim.fn.strchars(text) > room then
      text = vim.fn.strcharpart(text, 0, room) .. '…'
    end
    if text ~= '' then
      client.say(text, highest)
    end
  end, 100)
end

local told = {
  review_asked = function(event)
    tell({ asked = event })
  end,
  proposal_reviewed = function(event)
    -- What was decided before it was told needs no word; its place stays, for the telling is under way.
    for at, one in ipairs(news) do
      if one.asked and one.asked.proposal == event.proposal then
        news[at] = {}
      end
    end
  end,
  proposal_conflicted = function(event)
    tell({
      text = ('#%d does not fit what you typed: %s'):format(event.proposal, event.why),
      level = vim.log.levels.WARN,
    })
  end,
  proposal_not_applied = function(event)
    tell({
      text = ('#%d was not applied: %s'):format(event.proposal, event.why),
      level = vim.log.levels.WARN,
    })
  end,
  run_finished = function(event)
    local ending, changed = event.ending, #event.applied
    if not ending or ending == vim.NIL then
      tell({ text = 'run over: ' .. vim.split(vim.trim(event.summary), '\n')[1] })
    elseif changed == 0 then
      tell({ text = 'run over. ' .. ending.headline })
    else
      tell({ text = ('run over: changed %d symbol%s. %s'):format(changed, changed == 1 and '' or 's', ending.headline) })
    end
  end,
}

--- `starling/event`
function M.event(params)
  local say = told[params.event.event]
  if say then
    say(params.event)
  end
  M.refresh()
end

--- `starling/intent`: an agent waits for leave.
function M.intent(params)
  M.refresh()
  vim.schedule(function()
    local question = ('Starling: %s means to: %s'):format(params.symbol, params.intent)
    local choices = { 'Go on', 'No', 'Differently…' }
    vim.ui.select(choices, { prompt = question, kind = 'starling' }, function(choice)
      local about = { run = params.run, symbol = params.symbol, intent = params.intent }
      if choice == choices[1] then
        client.execute('starling.accept', about)
      elseif choice == choices[2] or choice == choices[3] then
        local is_veto = choice == choices[2]
        vim.ui.input({ prompt = is_veto and 'Why not? ' or 'How instead? ' }, function(text)
          if text and text ~= '' then
            about[is_veto and 'reason' or 'text'] = text
            client.execute(is_veto and 'starling.reject' or 'starling.steer', about)
          end
        end)
      end
    end)
  end)
end

--- `starling/status`
function M.set_status(params)
  M.status = params
  M.refresh()
  vim.cmd.redrawstatus({ bang = true })
end

--- `starling/undone`
function M.undone(params)
  if #params.proposals > 0 or not params.error then
    tell({ text = ('%d change%s undone'):format(#params.proposals, #params.proposals == 1 and '' or 's') })
  end
  if params.error then
    client.say('not undone: ' .. params.error, vim.log.levels.ERROR)
  end
  if params.warning then
    client.say(params.warning, vim.log.levels.WARN)
  end
  M.refresh()
end

function M.connected()
  M.refresh()
end

function M.gone()
  M.status = { text = '', waiting = 0, working = 0 }
  M.runs = {}
  changed()
end

return M
