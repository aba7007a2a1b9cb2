

# What follows is part of the plugin only in a run that records what the tests execute. It calls no code
# of the project: no `__repr__`, no property and no `__eq__`, so that no test can depend on it.
import re
import types

# The ids of the tests that failed before. Starling sets them.
_failing = ()
# The profiler of older versions of Python is slow. Beside the failing tests, it records every third test.
_EVERY = 3
# Sizes of what is recorded of one failure.
_FRAMES = 8
_LOCALS = 12
_CHARACTERS = 200
_ITEMS = 5
_DEPTH = 3
_INSTALLED = ("site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox", "node_modules")
# Fixtures and the classes of test cases say nothing about the project.
_MACHINERY = ("_pytest", "pytest", "unittest", "pluggy", "_pytest_mock", "pytest_mock")
_SECRET = re.compile("password|passwd|secret|api_?key|private_?key|credential", re.I)
# Classes whose `repr` is not code of the project.
_PRINTED = (
    ("datetime", "date datetime time timedelta"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("pathlib", "PosixPath WindowsPath PurePosixPath"),
    ("uuid", "UUID"),
)
_NO_VALUES = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)
_class_name = type.__dict__["__name__"].__get__
_class_bases = type.__dict__["__mro__"].__get__
_class_fields = type.__dict__["__dict__"].__get__
_own_files = {}
_roots = [_directory]


def _is_own(path):
    known = _own_files.get(path)
    if known is None:
        parts = path.replace(os.sep, "/").split("/")
        inside = any(path.startswith(root + os.sep) for root in _roots)
        known = inside and parts[-1] != "conftest.py" and not any(one in parts for one in _INSTALLED)
        _own_files[path] = known
    return known


def _is_machinery(kind):
    modules = (_class_fields(base).get("__module__") for base in _class_bases(kind))
    return any(type(one) is str and one.split(".")[0] in _MACHINERY for one in modules)


def _is_printed(kind):
    for module, names in _PRINTED:
        loaded = getattr(sys.modules.get(module), "__dict__", {})
        if any(loaded.get(name) is kind for name in names.split()):
            return True
    return False


def _first(values):
    return [value for value, _ in zip(values, range(_ITEMS))]


def _joined(shown, count):
    return ", ".join(shown + ["..."] * (count > len(shown)))


def _pairs(fields, depth, between, shown_key):
    pairs = []
    for key, value in _first(dict.items(fields)):
        is_secret = type(key) is str and _SECRET.search(key)
        text = "[secret]" if is_secret else _shown(value, depth - 1)
        pairs.append(shown_key(key) + between + text)
    return _joined(pairs, dict.__len__(fields))


def _fields(value):
    # The attributes of an object, read without its class's own code.
    fields = {}
    for base in _class_bases(type(value)):
        of_class = _class_fields(base)
        slot = of_class.get("__dict__")
        if type(slot) is types.GetSetDescriptorType:
            found = slot.__get__(value)
            if type(found) is dict:
                fields.update((key, one) for key, one in found.items() if type(key) is str)
        elif "__slots__" in of_class:
            for name, slot in of_class.items():
                if type(slot) is types.MemberDescriptorType:
                    try:
                        fields[name] = slot.__get__(value)
                    except AttributeError:
                        pass
    return fields


def _container(value, kind, base, depth):
    name = _class_name(kind)
    count = base.__len__(value)
    if count and depth <= 0:
        return "<%s of length %d>" % (name, count)
    if base is dict:
        text = "{%s}" % _pairs(value, depth, ": ", lambda key: _shown(key, 0))
        return text if kind is dict else "%s(%s)" % (name, text)
    items = _joined([_shown(one, depth - 1) for one in _first(base.__iter__(value))], count)
    if kind is list:
        return "[%s]" % items
    if kind is tuple:
        return "(%s%s)" % (items, "," if count == 1 else "")
    return "{%s}" % items if kind is set and items else "%s(%s)" % (name, items)


def _shown(value, depth):
    kind = type(value)
    for base in (bool, float, complex, type(None)):
        if kind is base or issubclass(kind, base):
            return base.__repr__(value)
    if issubclass(kind, int):
        bits = int.bit_length(value)
        return int.__repr__(value) if bits < 4 * _CHARACTERS else "<int of %d bits>" % bits
    for base in (str, bytes, bytearray):
        if issubclass(kind, base):
            count = base.__len__(value)
            is_long = count > _CHARACTERS
            return "<%s of length %d>" % (_class_name(kind), count) if is_long else base.__repr__(value)
    for base in (dict, list, tuple, set, frozenset):
        if issubclass(kind, base):
            return _container(value, kind, base, depth)
    if _is_printed(kind):
        return repr(value)
    name = _class_name(kind)
    fields = _fields(value) if depth > 0 else {}
    return "%s(%s)" % (name, _pairs(fields, depth, "=", lambda key: key)) if fields else "<%s>" % name


# A text is shown whole or not at all: the rest of a secret could not be recognized.
def _short_value(value):
    for depth in range(_DEPTH, -1, -1):
        text = _shown(value, depth)
        if len(text) <= _CHARACTERS:
            return text
    return "<%s>" % _class_name(type(value))


def _values(frame):
    lines = []
    for name, value in list(frame.f_locals.items()):
        if len(lines) == _LOCALS:
            break
        kind = type(value)
        if name.startswith(("__", "@", ".")) or issubclass(kind, _NO_VALUES) or _is_machinery(kind):
            continue
        text = "[secret]" if _SECRET.search(name) else _short_value(value)
        lines.append("%s = %s" % (name, text.replace("\n", " ")))
    return lines


# Modules that show values in messages. What they call says nothing about the failure.
_SHOWING = ("_pytest.assertion", "_pytest._io", "unittest.util", "pprint", "reprlib")


def _is_for_message(frame):
    """Whether a function was called to show a value in the message of a failure."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if type(module) is str and module.startswith(_SHOWING):
            return True
        if type(module) is str and module.startswith(("_pytest.", "pluggy.")):
            return False
        frame = frame.f_back
    return False


class _Monitor(object):
    """Python 3.12 and newer: a tool of its own reports each line once in a test."""

    every = 1

    def __init__(self):
        self.tool = None
        self.lines = {}
        self.noted = set()
        self.own = {}
        self.is_alone = True

    def start(self):
        monitoring = sys.monitoring
        events = monitoring.events
        if self.tool is None:
            # The tools 0 to 2 and 5 have a fixed purpose, such as coverage.
            free = [tool for tool in (4, 3) if monitoring.get_tool(tool) is None]
            if not free:
                return False
            self.tool = free[0]
            monitoring.use_tool_id(self.tool, _name)
            monitoring.register_callback(self.tool, events.PY_START, self._started)
            monitoring.register_callback(self.tool, events.LINE, self._reached)
        # `restart_events` restarts the events of all tools, so it is called only if there is no other tool.
        others = [tool for tool in range(6) if tool != self.tool]
        self.is_alone = all(monitoring.get_tool(tool) is None for tool in others)
        self.lines, self.noted = {}, set()
        monitoring.set_events(self.tool, events.PY_START)
        if self.is_alone:
            monitoring.restart_events()
        return True

    def _started(self, code, offset):
        if _is_own(code.co_filename):
            if _is_for_message(sys._getframe(1)):
                return None
            self.noted.add(id(code))
            self.lines.setdefault(code.co_filename, set()).add(code.co_firstlineno)
            if self.is_alone and id(code) not in self.own:
                # The code is kept, so that no other code gets its id.
                self.own[id(code)] = code
                sys.monitoring.set_local_events(self.tool, code, sys.monitoring.events.LINE)
        return sys.monitoring.DISABLE if self.is_alone else None

    def _reached(self, code, line):
        if id(code) in self.noted:
            self.lines[code.co_filename].add(line)
        return sys.monitoring.DISABLE if self.is_alone else None

    def stop(self):
        sys.monitoring.set_events(self.tool, 0)
        lines, self.lines, self.noted = self.lines, {}, set()
        return lines

    def end(self):
        if self.tool is not None:
            for code in self.own.values():
                sys.monitoring.set_local_events(self.tool, code, 0)
            sys.monitoring.free_tool_id(self.tool)
            self.tool = None


class _Profile(object):
    """Older versions of Python: the profiler in C reports functions, unless the project has a profiler."""

    every = _EVERY

    def start(self):
        if sys.getprofile() is not None:
            return False
        from _lsprof import Profiler

        self.profiler = Profiler(subcalls=False, builtins=False)
        self.profiler.enable()
        return True

    def stop(self):
        self.profiler.disable()
        lines = {}
        for entry in self.profiler.getstats():
            code = entry.code
            # Who called a `__repr__` is not known: it may have been for a message.
            if type(code) is types.CodeType and code.co_name != "__repr__" and _is_own(code.co_filename):
                lines.setdefault(code.co_filename, set()).add(code.co_firstlineno)
        return lines

    def end(self):
        pass


class _Recording(_Results):
    """The results, and what the tests execute in the project: for each test of `_failing` that fails its
    lines, and its frames with the values of their variables; for the tests that pass the number of
    tests for each line. In older versions of Python, the only line of a function is its first one."""

    def __init__(self, config):
        super(_Recording, self).__init__(config)
        root = str(getattr(config, "rootpath", None) or config.rootdir)
        _roots.extend(one for one in (root, os.path.realpath(root)) if one not in _roots)
        self.recorder = _Monitor() if hasattr(sys, "monitoring") else _Profile()
        self.is_recording = False
        self.lines = None
        self.begun = 0
        self.passed = 0
        self.passing = {}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        self.begun += 1
        self.lines = None
        if self.begun % self.recorder.every == 0 or self._is_like_failing(item):
            self.is_recording = os.getpid() == _owner and self.recorder.start()
        yield

    def _is_like_failing(self, item):
        # Or another case of the same parametrized test.
        function = self._id(item).partition("[")[0]
        return any(one.partition("[")[0] == function for one in _failing)

    # The lines of the set-up and of the test itself are noted, but not those of the teardown.
    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        yield
        self._stop()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        if call.when == "setup" and call.excinfo is not None:
            self._stop()
        outcome = yield
        try:
            self._note(outcome.get_result(), call)
        except Exception:
            # Without these records, the result is the same.
            pass

    def _stop(self):
        if self.is_recording:
            self.is_recording = False
            self.lines = self.recorder.stop()

    def _note(self, report, call):
        node = self._id(report)
        if report.outcome == "failed" and call.when != "teardown" and node in _failing:
            self._note_frames(node, call.excinfo.tb)
            for path, lines in (self.lines or {}).items():
                _note(u"executed", node, path, " ".join("%d" % line for line in lines))
        elif report.outcome == "passed" and call.when == "call" and not hasattr(report, "wasxfail"):
            if self.lines is not None and node not in _failing:
                self.passed += 1
                for path, lines in self.lines.items():
                    counts = self.passing.setdefault(path, {})
                    for line in lines:
                        counts[line] = counts.get(line, 0) + 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session, exitstatus):
        self.recorder.end()
        _note(u"passed", self.passed)
        for path, counts in self.passing.items():
            _note(u"passing", path, " ".join("%d:%d" % one for one in counts.items()))
        super(_Recording, self).pytest_sessionfinish(session, exitstatus)

    def _note_frames(self, node, traceback):
        frames = []
        while traceback is not None:
            frame = traceback.tb_frame
            hidden = frame.f_locals.get("__tracebackhide__") is True
            if _is_own(frame.f_code.co_filename) and not hidden:
                frames.append((frame, traceback.tb_lineno))
            traceback = traceback.tb_next
        for frame, line in frames[:1] + frames[1:][1 - _FRAMES :]:
            code = frame.f_code
            _note(u"frame", node, code.co_filename, line, code.co_name, "\n".join(_values(frame)))


if sys.version_info >= (3,):
    _Results = _Recording
