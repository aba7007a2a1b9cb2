# Writes the results of unittest's text runner, and of Django's, which is built on it, to the file
# `results` in the folder above this one, one record a line. Starling reads them in place of what is
# printed: the code under test can print anything. Python imports this file as `sitecustomize` at its
# start. It runs in the project's own Python; where it cannot work, it does nothing.
import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))
_path = os.path.join(os.path.dirname(_folder), "results")
# Programs that put the reporters back.
_programs = os.path.join(os.path.dirname(_folder), "bin")
_FIELD = "\x1f"
_LINE = "\x1e"
_MESSAGE = 6000


def _import_own():
    # The module of this name that Python would have imported otherwise.
    name = "sitecustomize"
    this = sys.modules.pop(name, None)
    sys.path[:] = [path for path in sys.path if path != _folder]
    try:
        __import__(name)
    except ImportError:
        if name in sys.modules:
            raise
    finally:
        if this is not None:
            sys.modules.setdefault(name, this)


def _take(name, entry):
    entries = os.environ.get(name, "").split(os.pathsep)
    if entry not in entries:
        return False
    _set(name, [one for one in entries if one != entry])
    return True


def _set(name, entries):
    if any(entries):
        os.environ[name] = os.pathsep.join(entries)
    else:
        os.environ.pop(name, None)


class _Sessions(object):
    def __init__(self):
        self.owner = None
        self.running = False
        self.taken = []
        self.pending = []

    def begin(self):
        # What the tests of a session start, in itself or as another process, is no session of its own.
        if self.running:
            return False
        if self.owner != os.getpid():
            if _folder not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
                return False
            self.owner = os.getpid()
            del self.pending[:]
        self.running = True
        entries = (("PYTHONPATH", _folder), ("PATH", _programs))
        self.taken = [(name, entry) for name, entry in entries if _take(name, entry)]
        return True

    def end(self):
        # What this process starts afterwards is a session of its own.
        for name, entry in self.taken:
            _set(name, [entry] + [one for one in os.environ.get(name, "").split(os.pathsep) if one])
        self.running = False

    def note(self, *fields):
        fields = ["%s" % (field,) for field in fields]
        fields = [field.replace(_FIELD, " ").replace(_LINE, " ") for field in fields]
        line = _FIELD.join(fields).replace("\r", "").replace("\n", _LINE)
        self.pending.append(line + "\n")

    def flush(self):
        # A forked child has the records of its parent.
        if self.owner == os.getpid():
            text = "".join(self.pending)
            with open(_path, "ab") as file:
                file.write(text.encode("utf-8", "replace"))
        del self.pending[:]


_sessions = _Sessions()


def _id(test):
    name = "%s" % (test.id(),)
    for loader in ("_FailedTest.", "ModuleImportFailure.", "LoadTestsFailure."):
        before, found, after = name.partition(loader)
        if found and before.startswith("unittest.loader"):
            return after
    # A failed set-up is named `setUpClass (module.Class)`.
    method, found, rest = name.partition(" (")
    if found and method.startswith(("setUp", "tearDown")) and rest.endswith(")"):
        return "%s.%s" % (rest[:-1], method)
    return name


def _short(text):
    if len(text) <= _MESSAGE:
        return text
    return text[: _MESSAGE // 3] + "\n...\n" + text[-2 * _MESSAGE // 3 :]


def _record(outcome, phase, test, message):
    _sessions.note("test", outcome, phase, "0", _id(test), _short(message))


def _last(entries, known):
    return "%s" % (entries[-1][1],) if len(entries) > known else ""


def _recording(result):
    base = type(result)

    class Recording(base):
        def addSuccess(self, test):
            base.addSuccess(self, test)
            _record("passed", "call", test, "")

        def addFailure(self, test, err):
            known = len(self.failures)
            base.addFailure(self, test, err)
            _record("failed", "call", test, _last(self.failures, known))

        def addError(self, test, err):
            known = len(self.errors)
            base.addError(self, test, err)
            _record("failed", "error", test, _last(self.errors, known))

        def addSkip(self, test, reason):
            base.addSkip(self, test, reason)
            _record("skipped", "call", test, "%s" % (reason,))

        def addExpectedFailure(self, test, err):
            base.addExpectedFailure(self, test, err)
            _record("xfailed", "call", test, "expected failure")

        def addUnexpectedSuccess(self, test):
            base.addUnexpectedSuccess(self, test)
            _record("failed", "call", test, "unexpected success")

        def addSubTest(self, test, subtest, err):
            failures, errors = len(self.failures), len(self.errors)
            base.addSubTest(self, test, subtest, err)
            if err is None:
                return
            is_failure = issubclass(err[0], test.failureException)
            message = _last(self.failures, failures) or _last(self.errors, errors)
            which = "%s" % (subtest._subDescription(),)
            phase = "call" if is_failure else "error"
            _record("failed", phase, test, which + "\n" + message)

        def stopTest(self, test):
            base.stopTest(self, test)
            _sessions.flush()

    Recording.__name__ = base.__name__
    result.__class__ = Recording
    return result


def _watch(module):
    runner = module.TextTestRunner
    run = runner.run

    def recorded(self, test):
        if not _sessions.begin():
            return run(self, test)
        make = self._makeResult
        self._makeResult = lambda: _recording(make())
        _sessions.note("begin", "unittest")
        _sessions.flush()
        try:
            result = run(self, test)
        finally:
            del self._makeResult
            _sessions.end()
        _sessions.note("end", 0 if result.wasSuccessful() else 1, result.testsRun)
        _sessions.flush()
        return result

    runner.run = recorded


class _Finder(object):
    # Most programs import no unittest: nothing is loaded for them.
    def find_spec(self, name, path=None, target=None):
        if name != "unittest.runner":
            return None
        sys.meta_path.remove(self)
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _watch(module)

        spec.loader.exec_module = exec_module
        return spec


_import_own()
if sys.version_info >= (3, 4):
    sys.meta_path.insert(0, _Finder())
