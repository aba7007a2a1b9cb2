--- What goes on: runs, agents and what each is doing, proposals; kept up to date while it is open.
local state = require('starling.state')
local window = require('starling.window')
local client = require('starling.client')
local M = {}

local NAMES = { scout = 'scout', proxy = 'proxy user', solo = 'the agent', user = 'you', starling = 'Starling' }

local function name(agent)
  return type(agent) == 'table' and agent.agent or NAMES[agent] or agent
end

--- A cost of nothing is said only where every price is known.
local function cost(spent)
  local known = type(spent.dollars) == 'number' and (', $%.4f'):format(spent.dollars) or ''
  local unpriced = spent.unpriced_calls or 0
  if unpriced == 0 then
    return known
  end
  return known == '' and ', cost unknown' or ('%s and the cost of %d calls, which is unknown'):format(known, unpriced)
end

--- The lines of the view, the newest run first, and what each is about.
local function lines_of(runs)
  local lines, about = {}, {}
  local function add(line, subject)
    table.insert(lines, line)
    about[#lines] = subject
  end
  if #runs == 0 then
    add('No run yet: `:Starling run TASK` begins one.')
  end
  for at = #runs, 1, -1 do
    local run = runs[at]
    local spent = run.spent
    add(('%s %s'):format(run.stage == 'ended' and '■' or '▶', vim.split(run.task, '\n')[1]), { run = run.run })
    add(('  %d calls, %d tokens%s%s'):format(spent.calls, spent.tokens, cost(spent),
      run.restored and ', of an earlier session' or ''), { run = run.run })
    for _, agent in ipairs(run.agents) do
      local seconds = agent.working and agent.seconds >= 3 and (' · %d s'):format(agent.seconds) or ''
      add(('  %s %s: %s%s'):format(agent.working and '●' or '○', name(agent.agent), agent.doing, seconds), { run = run.run })
      if agent.working and #agent.looked > 0 then
        add('      looked at: ' .. table.concat(vim.list_slice(agent.looked, math.max(1, #agent.looked - 3)), ', '), { run = run.run })
      end
    end
    for _, proposal in ipairs(run.proposals) do
      if proposal.state ~= 'dropped' then
        add(('  #%d %s (%s): %s'):format(proposal.proposal, proposal.symbol, proposal.state,
          vim.split(proposal.reason, '\n')[1]), { run = run.run, proposal = proposal.proposal })
      end
    end
    if run.headline and run.headline ~= vim.NIL then
      add('  ' .. run.headline, { run = run.run })
    end
    if run.summary and run.summary ~= vim.NIL then
      add('  ' .. vim.split(run.summary, '\n')[1], { run = run.run })
    end
    add('')
  end
  return lines, about
end

--- Opens the view below.
function M.open()
  local buffer = window.buffer('runs', 'starling-runs')
  local lines, about = lines_of(state.runs)
  window.write(buffer, lines)
  vim.cmd(('botright %dsplit'):format(math.max(5, math.min(#lines, 15))))
  vim.api.nvim_win_set_buf(0, buffer)
  vim.wo.winbar = 'Starling: <CR> review · x stop · u undo · q close'
  local function here()
    return about[vim.api.nvim_win_get_cursor(0)[1]]
  end
  window.keys(buffer, {
    q = '<Cmd>close<CR>',
    ['<CR>'] = function()
      local subject = here()
      if subject and subject.proposal then
        require('starling.review').open(subject)
      end
    end,
    x = function()
      if here() then
        client.execute('starling.cancel', { run = here().run })
      end
    end,
    u = function()
      if here() then
        client.execute('starling.undo', { run = here().run, proposal = here().proposal })
      end
    end,
  })
  -- The seconds of agents at work.
  local clock = assert(vim.uv.new_timer())
  clock:start(1000, 1000, vim.schedule_wrap(function()
    if not vim.api.nvim_buf_is_valid(buffer) then
      if not clock:is_closing() then
        clock:close()
      end
    elseif state.status.working > 0 then
      state.refresh()
    end
  end))
  state.watch(function()
    if not vim.api.nvim_buf_is_valid(buffer) then
      return false
    end
    lines, about = lines_of(state.runs)
    window.write(buffer, lines)
  end)
end

return M
