--- One evening with Starling in Neovim: `nvim --clean --headless -l story.lua` with NVIM and STARLING set.
local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
package.path = here .. '/?.lua;' .. package.path
local drive = require('drive')

local plugin = vim.fs.dirname(here)
local bed = vim.fn.tempname()
local project = bed .. '/project'
vim.fn.mkdir(project .. '/.git', 'p')

local function write(name, text)
  local file = assert(io.open(name, 'w'))
  file:write(text)
  file:close()
end

local function read(name)
  local file = assert(io.open(project .. '/' .. name))
  local text = file:read('*a')
  file:close()
  return text
end

local PRICE, TAX = 'def price():\n    return 1\n', 'def tax():\n    return 10\n'
write(project .. '/price.py', PRICE)
write(project .. '/tax.py', TAX)
-- The same column is another number in each encoding.
write(project .. '/bridge.py', 'def price(): pass\nx = "🙂é"; price()\nprice()\n')
require('recording').write(bed .. '/recording.jsonl')
--- The user's configuration, with more arguments of the server.
local function INIT(arguments)
  return ([[
vim.opt.runtimepath:prepend(%q)
local show = vim.notify
function vim.notify(message, ...)
  local said = assert(io.open(%q, 'a'))
  said:write(message, '\n')
  said:close()
  return show(message, ...)
end
vim.o.statusline = '%%f %%m [%%{v:lua.require("starling").status()}]'
require('starling').setup({ cmd = { %q, 'lsp'%s } })
--- Asks through the bridge as the server does, about the word under the cursor.
function Asked(provider)
  local starling = vim.lsp.get_clients({ name = 'starling' })[1]
  local params = vim.lsp.util.make_position_params(0, starling.offset_encoding)
  params.version = vim.lsp.util.buf_versions[0 + vim.api.nvim_get_current_buf()]
  coroutine.wrap(function()
    local handler = starling.handlers['starling/' .. provider]
    local answer, failed = handler(nil, params, { client_id = starling.id })
    local said = failed and failed.message or answer == vim.NIL and 'nobody can tell'
    for _, place in ipairs(said and {} or answer) do
      local range = place.range
      said = ('%%s%%s %%d:%%d-%%d '):format(said or '', vim.fs.basename(place.uri or ''), range.start.line, range.start.character, range['end'].character)
    end
    vim.notify(('%%s: %%s'):format(provider, said))
  end)()
end
]]):format(plugin, bed .. '/said', vim.env.STARLING, arguments)
end
write(bed .. '/init.lua', INIT((", '--model', 'replay:%s/recording.jsonl'"):format(bed)))

local steps = 0
local function step(what)
  steps = steps + 1
  io.write(('%2d %s\n'):format(steps, what))
end

local function story()
  local nvim = drive.start({
    nvim = vim.env.NVIM, init = bed .. '/init.lua', folder = project, file = 'price.py', said = bed .. '/said',
    environment = { STARLING_CACHE_DIR = bed .. '/cache', XDG_CONFIG_HOME = bed, XDG_STATE_HOME = bed, TERM = 'xterm-256color' },
  })
  nvim:sees('return 1')

  step('a task over two files is given, and both proposals come')
  nvim:keys(':Starling run Double the values<CR>')
  nvim:sees('2 to review')
  nvim:sees('Starling #')

  step('the view of runs says no cost before a price is known')
  nvim:keys(':Starling runs<CR>')
  nvim:sees(' tokens')
  assert(not nvim:screen():find('$0', 1, true), 'a cost of nothing')
  nvim:keys('q')

  step('the list names both')
  nvim:keys(':Starling list<CR>')
  nvim:sees('tax.py|')
  nvim:sees('Twice the tax')
  nvim:keys(':cclose<CR>')

  step('what is offered stands at the end of a line, and no line moves')
  nvim:sees('Accept')
  assert(nvim:screen():find('def price%(%):[^\n]*Twice the price[^\n]*Accept[^\n]*\n[%s%d]*return 1'), nvim:screen())

  step('the review of the symbol shows reason, evidence and diff')
  nvim:keys(':Starling review<CR>')
  nvim:sees('a accept')
  nvim:sees('Twice the price')
  nvim:sees('-    return 1')
  nvim:sees('+    return 2')
  nvim:sees('tests: unknown')

  step('a proposal that is not on the screen is shown by the first accept')
  nvim:keys('q')
  nvim:no_longer_sees('a accept')
  nvim:keys(':Starling accept<CR>')
  nvim:sees('a accept')
  nvim:sees('Twice the price')

  step('it is edited before it is accepted, and checked again')
  nvim:keys('e')
  nvim:sees('your version:')
  nvim:keys('ggO# Twice.<Esc>:w<CR>')
  nvim:sees('a accept')
  nvim:sees('+# Twice.')
  nvim:sees('+    return 2')
  assert(read('price.py') == PRICE, 'what waits is not written')

  step('a part of it is taken out again')
  nvim:keys('e')
  nvim:sees('your version:')
  nvim:keys('ggdo:w<CR>')
  nvim:sees('a accept')
  nvim:no_longer_sees('+# Twice.')
  nvim:sees('+    return 2')

  step('it is accepted: the buffer has it, the disk only after a save')
  nvim:keys('a')
  nvim:no_longer_sees('a accept')
  nvim:sees('    return 2')
  assert(read('price.py') == PRICE, 'nothing is written before the save')
  nvim:keys(':w<CR>')
  nvim:until_so('the save', function()
    return read('price.py') == 'def price():\n    return 2\n'
  end)

  step('undo is one step')
  nvim:keys('u')
  nvim:sees('    return 1')
  nvim:keys('<C-r>')
  nvim:sees('    return 2')

  step('the other is rejected with a reason, and a revised one comes')
  nvim:keys(':Starling review<CR>')
  nvim:sees('Twice the tax')
  nvim:sees('a accept')
  nvim:keys('r')
  nvim:sees('Why?')
  nvim:keys('give it a name<CR>')
  nvim:hears('#3 for tax.py::tax')
  nvim:keys(':Starling review<CR>')
  nvim:sees('a accept')
  nvim:sees('+    return twice')
  nvim:keys('a')
  nvim:until_so('a file that was not open is saved', function()
    return read('tax.py') == 'def tax():\n    twice = 20\n    return twice\n'
  end)
  nvim:hears('run over: changed')

  step('the whole run is undone')
  nvim:keys(':Starling undo<CR>')
  nvim:hears('2 changes undone')
  nvim:sees('    return 1')
  nvim:keys(':w<CR>:Starling runs<CR>')
  nvim:sees('(undone): Twice the price')
  nvim:keys('q')

  step('what is typed in the same place wins, and the agent begins anew')
  nvim:keys(':Starling run Double the values<CR>')
  nvim:sees('2 to review')
  nvim:keys('jA00<Esc>')
  nvim:sees('conflicts with what you typed')
  nvim:keys(':Starling review<CR>')
  nvim:sees('both sides changed')
  -- Your text is beside the proposed one.
  nvim:keys('d')
  nvim:sees('conflicts with yours')
  nvim:sees('    return 2 ')
  nvim:sees('    return 100')
  nvim:keys('q')
  nvim:no_longer_sees('conflicts with yours')
  nvim:keys(':Starling review<CR>')
  nvim:sees('both sides changed')
  nvim:keys('a')
  nvim:hears('does not fit what you typed')
  nvim:sees('Twice what you typed')
  nvim:sees('    return 100')

  step('a stopped run leaves nothing to review')
  nvim:keys(':Starling stop<CR>')
  nvim:no_longer_sees('to review')
  nvim:no_longer_sees('Starling #')
  nvim:keys(':undo 0<CR>:w<CR>')

  step('a task of several lines is written in a float, with completion and history')
  nvim:keys(':Starling run<CR>')
  nvim:sees('<C-s> or :w sends')
  nvim:keys('Double the values<CR>of @tax<C-x><C-u>')
  nvim:sees('@tax.py')
  nvim:keys(' and #pri<C-x><C-u>')
  nvim:sees('#price.py::price')
  nvim:keys('<C-n><C-y>')
  nvim:sees('of @tax.py and #')
  nvim:keys('<Esc>:w<CR>')
  nvim:no_longer_sees('<C-s> or :w sends')
  nvim:sees('2 to review')
  nvim:keys(':Starling stop<CR>')
  nvim:no_longer_sees('to review')
  nvim:keys(':Starling run<CR>')
  nvim:sees('<C-s> or :w sends')
  nvim:keys('A draft')
  nvim:sees('A draft')
  -- The codes of the arrows: up, then down.
  nvim:keys('<Esc>[A')
  nvim:sees('of @tax.py and #')
  nvim:no_longer_sees('A draft')
  nvim:keys('<Esc>[B<Esc>[B')
  nvim:sees('A draft')
  nvim:keys('<C-s>')
  nvim:no_longer_sees('<C-s> or :w sends')
  nvim:sees('2 to review')
  nvim:keys(':Starling stop<CR>')
  nvim:no_longer_sees('to review')

  step('the model is chosen from a list, and the next run uses it')
  nvim:keys(':Starling model<CR>')
  nvim:sees('(in use)')
  nvim:keys('<Esc>')
  nvim:no_longer_sees('(in use)')
  nvim:keys((':Starling model replay:%s/recording.jsonl<CR>'):format(bed))
  nvim:hears('the next run and the next question use replay:')

  step('a question is answered in a panel, with a citation to jump to')
  nvim:keys(':Starling ask What is the price?<CR>')
  nvim:sees('The price is')
  nvim:sees('<CR> on a citation')
  nvim:keys('<C-w>l/price.py:2<CR><CR>')
  nvim:sees('price.py:2')
  nvim:keys(':only<CR>')

  step('the view of runs tells what goes on')
  nvim:keys(':Starling run Double the values<CR>')
  nvim:sees('2 to review')
  nvim:keys(':Starling runs<CR>')
  nvim:sees('waits for your review')
  nvim:sees('(waiting): Twice the price')
  nvim:keys('q')

  step('the server is killed, started again, and offers what waited')
  local killed = nvim:children('starling')
  for _, pid in ipairs(killed) do
    vim.uv.kill(pid, 'sigkill')
  end
  nvim:until_so('another server', function()
    return vim.iter(nvim:children('starling')):any(function(pid)
      return not vim.list_contains(killed, pid)
    end)
  end)
  nvim:sees('2 to review')
  nvim:keys(':Starling review<CR>')
  nvim:sees('a accept')
  nvim:keys('a')
  nvim:no_longer_sees('a accept')
  nvim:sees('    return 2')
  nvim:keys(':w<CR>')
  nvim:until_so('it is on the disk', function()
    return read('price.py') == 'def price():\n    return 2\n'
  end)

  step('the undo of the editor is noticed')
  nvim:keys(':Starling runs<CR>')
  nvim:sees('(applied): Twice the price')
  nvim:keys('<C-w>pu')
  nvim:sees('(undone): Twice the price')
  nvim:keys('<C-r>')
  nvim:sees('(applied): Twice the price')
  nvim:keys(':w<CR>:only<CR>')

  step('it is started anew when asked to')
  nvim:keys(':Starling restart<CR>')
  nvim:no_longer_sees('to review')
  nvim:sees('1 to review')
  nvim:keys(':Starling acceptall<CR>')
  nvim:until_so('the other is on the disk', function()
    return read('tax.py') == 'def tax():\n    return 20\n'
  end)

  step('a proposal of a restored run is rejected, and nobody is at work')
  write(project .. '/tax.py', TAX)
  nvim:keys(':checktime<CR>:Starling run Double the values<CR>')
  nvim:sees('2 to review')
  nvim:keys(':Starling restart<CR>')
  nvim:no_longer_sees('to review')
  nvim:sees('2 to review')
  assert(not nvim:screen():find('at work', 1, true), 'its agents are gone')
  nvim:keys(':Starling reject not now<CR>')
  nvim:sees('1 to review')
  nvim:keys(':Starling steer shorter<CR>')
  nvim:hears('ended with an earlier server')
  nvim:keys(':Starling runs<CR>')
  nvim:sees('(rejected)')
  nvim:keys('q:Starling stop<CR>')
  nvim:no_longer_sees('to review')

  step('through the bridge Starling itself is never asked')
  nvim:keys(':e bridge.py<CR>')
  nvim:keys('2G$3h:lua Asked("definition")<CR>')
  nvim:hears('definition: nobody can tell')

  local servers = vim.env.STARLING_TEST_SERVERS
  if servers then
    step('through the bridge another server of the buffer is asked')
    nvim:keys((':lua vim.lsp.start({ name = "jedi", cmd = { "%s/jedi-language-server" }, root_dir = vim.fn.getcwd() })<CR>'):format(servers))
    nvim:keys(':lua vim.wait(60000, function() return #vim.lsp.get_clients({ bufnr = 0, method = "textDocument/definition" }) > 0 end) vim.notify("attached")<CR>')
    nvim:hears('attached')
    -- The first answer takes it longer than a bridge waits.
    nvim:keys('3G0:lua vim.lsp.buf_request_sync(0, "textDocument/definition", vim.lsp.util.make_position_params(0, "utf-16"), 60000) vim.notify("warm")<CR>')
    nvim:hears('warm')
    -- This server counts characters whatever was agreed on: a line of ASCII.
    nvim:keys('3G0:lua Asked("definition")<CR>')
    nvim:hears('definition: bridge.py 0:4-9')
  end

  step('a rename changes every certain use, and says which place may mean something else')
  write(project .. '/stock.py', 'class Stock:\n    def count_up(self):\n        return 1\n\n\nclass Other:\n    def count_up(self):\n        return 2\n')
  write(project .. '/order.py', 'from stock import Stock\n\n\ndef order(stock: Stock, thing):\n    return stock.count_up() + thing.count_up()\n')
  nvim:keys(':e stock.py<CR>')
  nvim:sees('class Stock')
  nvim:keys('2G$F(h:lua vim.lsp.buf.rename("total")<CR>')
  nvim:sees('1 place may mean another')
  nvim:sees('def total(self)')
  nvim:keys(':wa<CR>')
  nvim:until_so('the rename', function()
    return read('stock.py'):find('def total(self):\n        return 1', 1, true)
      and read('order.py'):find('stock.total()', 1, true)
  end)
  assert(read('stock.py'):find('def count_up(self):\n        return 2', 1, true), 'the other class keeps its name')

  step('health is good')
  nvim:keys(':checkhealth starling<CR>')
  nvim:sees('a server runs in')
  nvim:stop()

  step('a first run without a model asks for one, and the task is kept')
  write(bed .. '/fresh.lua', INIT(''))
  local fresh = drive.start({
    nvim = vim.env.NVIM, init = bed .. '/fresh.lua', folder = project, file = 'price.py', said = bed .. '/said',
    environment = { STARLING_CACHE_DIR = bed .. '/fresh', XDG_CONFIG_HOME = bed, XDG_STATE_HOME = bed, TERM = 'xterm-256color' },
  })
  fresh:sees('return')
  fresh:keys(':Starling run Double the values<CR>')
  fresh:hears('the task is kept')
  fresh:keys(':Starling fix<CR>')
  fresh:sees(': Choose a model')
  fresh:keys(fresh:screen():match('(%d+): Choose a model') .. '<CR>')
  fresh:sees('gguf:PATH')
  fresh:keys(('<C-u>replay:%s/recording.jsonl<CR>'):format(bed))
  fresh:sees('2 to review')
  fresh:stop()
end

--- What the runs say of themselves.
local function told()
  for _, path in ipairs(vim.fn.glob(bed .. '/cache/runs/*.jsonl', true, true)) do
    for line in io.lines(path) do
      local read, record = pcall(vim.json.decode, line)
      if read and record.event then
        local event = record.event
        io.write(('%6d %s %s %s\n'):format(record.at_ms, event.event, vim.inspect(event.agent or ''), event.why or event.summary or ''))
      end
    end
  end
end

local done, why = xpcall(story, debug.traceback)
if not done then
  told()
end
vim.fn.delete(bed, 'rf')
if not done then
  io.write(why .. '\n')
  os.exit(1)
end
io.write(('%d steps in Neovim %s\n'):format(steps, tostring(vim.version())))
os.exit(0)
