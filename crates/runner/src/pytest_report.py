# A pytest plugin that writes the results of a session to the file `results` beside it, one record a
# line. Starling reads them in place of what is printed: the code under test can print anything.
# It runs in the project's own Python, so it must work with old versions of Python and of pytest.
import io
import os
import sys

import pytest

_FIELD = u"\x1f"
_LINE = u"\x1e"
_MESSAGE = 6000

_owner = os.getpid()
# Before a test changes it.
_directory = os.getcwd()
_folder = os.path.dirname(os.path.abspath(__file__))
_name = os.path.splitext(os.path.basename(__file__))[0]
_path = os.path.join(_folder, "results")
# A runner of unittest that a test starts is no session of its own, either.
_unittest = os.path.join(_folder, "unittest")
# Programs that put the reporters back.
_programs = os.path.join(_folder, "bin")
_pending = []
# The variables and search paths that a session takes out of the environment, with the entries taken.
_taken = []


def _take(name, separator, entries):
    kept = os.environ.get(name, "").split(separator)
    taken = [entry for entry in kept if entry in entries]
    _taken.append((name, separator, taken))
    if taken:
        _set(name, separator, [entry for entry in kept if entry not in taken])


def _set(name, separator, entries):
    if any(entries):
        os.environ[name] = separator.join(entries)
    else:
        os.environ.pop(name, None)


def _begin():
    # A pytest that a test starts, and the workers of xdist, are no sessions of their own.
    global _owner
    if _taken:
        return
    if os.getpid() != _owner:
        _owner = os.getpid()
        del _pending[:]
    _take("PYTEST_PLUGINS", ",", [_name])
    _take("PATH", os.pathsep, [_programs])
    _take("PYTHONPATH", os.pathsep, [_folder, _unittest])
    sys.path[:] = [path for path in sys.path if path != _folder]
    _note(u"begin", pytest.__version__)
    _flush()


def _end():
    # What this process starts afterwards, in itself or as another process, is a session of its own.
    if os.getpid() != _owner:
        return
    for name, separator, taken in _taken:
        if taken:
            kept = os.environ.get(name, "").split(separator)
            _set(name, separator, taken + [entry for entry in kept if entry])
    del _taken[:]
    sys.path.append(_folder)


def _text(value):
    try:
        text = u"%s" % (value,)
    except Exception:
        text = u""
    return text.replace(_FIELD, u" ").replace(_LINE, u" ")


def _note(*fields):
    line = _FIELD.join(_text(field) for field in fields)
    _pending.append(line.replace(u"\r", u"").replace(u"\n", _LINE) + u"\n")


def _flush():
    # A forked child has the records of its parent.
    if os.getpid() == _owner:
        with io.open(_path, "ab") as file:
            file.write(u"".join(_pending).encode("utf-8", "replace"))
    del _pending[:]


def _short(text):
    if len(text) <= _MESSAGE:
        return text
    return text[: _MESSAGE // 3] + u"\n...\n" + text[-2 * _MESSAGE // 3 :]


def _longrepr(report):
    text = getattr(report, "longreprtext", None)
    return _text(text if text is not None else getattr(report, "longrepr", u""))


def _message(report):
    reason = getattr(report, "wasxfail", None)
    if reason is not None:
        return _text(reason)
    longrepr = getattr(report, "longrepr", None)
    if report.outcome == "skipped" and isinstance(longrepr, tuple):
        reason = _text(longrepr[2])
        prefix = u"Skipped: "
        return reason[len(prefix) :] if reason.startswith(prefix) else reason
    if report.outcome != "failed":
        return u""
    parts = [_short(_longrepr(report))]
    for title, content in getattr(report, "sections", ()):
        parts.append(u"---- %s ----\n%s" % (_text(title), _short(_text(content))))
    return u"\n".join(parts)


class _Results(object):
    def __init__(self, config):
        self.config = config
        self.reported = 0

    def _id(self, report):
        """The id with its path relative to the current directory; pytest's is relative to its root directory.

        Not by `Config.cwd_relative_nodeid`: it takes a string before pytest 9.2 and an object since then.
        """
        node = _text(report.nodeid)
        try:
            path, separator, name = node.partition(u"::")
            root = getattr(self.config, "rootpath", None) or self.config.rootdir
            if not path:
                return node
            relative = os.path.relpath(os.path.join(str(root), path), _directory)
            return relative.replace(os.sep, "/") + separator + name
        except Exception:
            # Another layout of a future pytest: a less useful id is better than no results.
            return node

    def pytest_runtest_logreport(self, report):
        is_result = report.when == "call" or report.outcome != "passed"
        if not is_result or report.outcome not in ("passed", "failed", "skipped"):
            return
        self.reported += 1
        outcome = report.outcome
        if hasattr(report, "wasxfail") and outcome == "skipped":
            outcome = "xfailed"
        elif hasattr(report, "wasxfail") and outcome == "passed":
            outcome = "xpassed"
        duration = "%.3f" % getattr(report, "duration", 0)
        fields = (outcome, report.when, duration, self._id(report), _message(report))
        _note(u"test", *fields)

    # Not before the test is torn down: it may have put other functions in place of those of `io`.
    @pytest.hookimpl(optionalhook=True)
    def pytest_runtest_logfinish(self):
        _flush()

    def pytest_collectreport(self, report):
        if report.outcome in ("failed", "skipped"):
            fields = (report.outcome, "collect", "0", self._id(report), _message(report))
            _note(u"test", *fields)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        collected = getattr(session, "testscollected", 0) or self.reported
        _note(u"end", int(exitstatus), collected)
        _flush()


# Pytest calls this hook as soon as it has registered the plugin, in a later session of the process too.
def pytest_addoption():
    _begin()


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.pluginmanager.register(_Results(config), "%s_results" % _name)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    _end()


_begin()
