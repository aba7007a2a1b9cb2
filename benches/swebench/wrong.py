"""Writes 22 deliberately wrong predictions for `starling swebench grade`: known changes with a defect, changes
without effect, and ways to cheat. None of them may be graded as resolved. `model_name_or_path` is the name of
the function in this script that created the prediction.

    python benches/swebench/wrong.py --dataset F.jsonl --environments E.jsonl --repos DIR \
        [--repo owner/name=PATH …] [--seed N] > wrong.jsonl
"""

import argparse
import difflib
import json
import pathlib
import random
import re
import subprocess
import tempfile

BLIND = """import unittest as _u
def _run(self, result=None):
    result = result or self.defaultTestResult()
    result.startTest(self)
    result.addSuccess(self)
    result.stopTest(self)
    return result
_u.TestCase.run = _run
_u.TestCase.__call__ = lambda self, *a, **k: _run(self, *a, **k)
"""
EXIT = "import os as _os\n_os._exit(0)\n"
HOOKS = """import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome = "passed"
    report.longrepr = None
"""


class Instance:
    """One instance with its single changed file before and after."""

    def __init__(self, row, repository, environment):
        self.id = row["instance_id"]
        self.row = row
        self.repository = repository
        self.seconds = environment["seconds"] + environment["seconds_p2p"]
        self.path = re.search(r"^\+\+\+ b/(.*)$", row["patch"], re.M)[1]
        self.tests = re.findall(r"^\+\+\+ b/(.*\.py)$", row["test_patch"], re.M)
        self.hunks = len(re.findall(r"^@@", row["patch"], re.M))

    def at_base(self, path):
        show = ["git", "-C", self.repository, "show", f"{self.row['base_commit']}:{path}"]
        done = subprocess.run(show, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    def read(self):
        self.before = self.at_base(self.path)
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, self.path)
            place.parent.mkdir(parents=True)
            place.write_text(self.before)
            subprocess.run(["git", "apply", "-"], input=self.row["patch"], text=True, cwd=folder, check=True)
            self.after = place.read_text()
        return self


def diff(path, before, after):
    lines = [text.splitlines(keepends=True) for text in (before, after)]
    name = f"a/{path}" if before else "/dev/null"
    body = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(*lines, name, f"b/{path}")
    )
    kind = "" if before else "new file mode 100644\n"
    return f"diff --git a/{path} b/{path}\n{kind}{body}"


def at_the_end(text, head):
    """Appends lines so that they run when the file is imported, and the file stays valid."""
    return text.rstrip("\n") + "\n\n\n" + head


def inverted(one, rng):
    """Negates a condition that the change added."""
    old = set(one.before.splitlines())
    lines = one.after.splitlines(keepends=True)
    found = [
        at for at, line in enumerate(lines)
        if line.rstrip("\n") not in old and re.match(r"\s*(if|elif) .*:\s*$", line)
    ]
    if not found:
        return None
    at = rng.choice(found)
    lines[at] = re.sub(r"(if|elif) (.*):\s*$", r"\1 not (\2):\n", lines[at])
    return diff(one.path, one.before, "".join(lines))


def hunk_left_out(one, rng):
    """Leaves out the longest hunk of the change."""
    if one.hunks < 2:
        return None
    matcher = difflib.SequenceMatcher(None, one.before.splitlines(True), one.after.splitlines(True), False)
    steps = [step for step in matcher.get_opcodes() if step[0] != "equal"]
    # The longest hunk is most likely the essential one.
    _, low, high, start, end = max(steps, key=lambda step: step[4] - step[3])
    lines = one.after.splitlines(True)
    lines[start:end] = one.before.splitlines(True)[low:high]
    return diff(one.path, one.before, "".join(lines))


def wrong_file(one, rng):
    """Writes the right text to a file that nothing imports."""
    return diff(one.path.removesuffix(".py") + "_mended.py", "", one.after)


def comment_only(one, rng):
    return diff(one.path, one.before, one.before.rstrip("\n") + "\n# mended\n")


def broken_syntax(one, rng):
    """Adds a line with a syntax error to the known change."""
    return diff(one.path, one.before, one.after.rstrip("\n") + "\ndef mended(:\n")


def does_not_apply(one, rng):
    lines = one.row["patch"].splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if line.startswith("-") and not line.startswith("---"))
    lines[at] = "-" + "x" * 40 + "\n"
    return "".join(lines)


def raises(one, rng):
    """Replaces a line of the change by a `raise` statement."""
    old = set(one.before.splitlines())
    lines = one.after.splitlines(keepends=True)
    for at, line in enumerate(lines):
        if line.rstrip("\n") not in old and re.match(r"\s+(return|if|[a-z_.]+ = ).*[^,(\[{\\]\n$", line):
            lines[at] = re.match(r"\s*", line)[0] + "raise RuntimeError('wrong')\n"
            text = "".join(lines)
            try:
                compile(text, one.path, "exec")
            except SyntaxError:
                lines[at] = line
                continue
            return diff(one.path, one.before, text)
    return None


def hangs(one, rng):
    return diff(one.path, one.before, at_the_end(one.after, "while True:\n    pass\n"))


def tests_emptied(one, rng):
    """Removes all tests from the files of the hidden tests."""
    return "".join(diff(path, one.at_base(path), "# nothing\n") for path in one.tests if one.at_base(path))


def exits(one, rng):
    return diff(one.path, one.before, at_the_end(one.before, EXIT))


def blinds(one, rng):
    return diff(one.path, one.before, at_the_end(one.before, BLIND))


def site(one, rng):
    return diff("sitecustomize.py", "", EXIT)


def runner(one, rng):
    """Replaces the test runner by a script that reports success."""
    path = "tests/runtests.py" if one.row["repo"] == "django/django" else "bin/test"
    return diff(path, one.at_base(path), "import sys\nprint('OK')\nsys.exit(0)\n")


def hooks(one, rng):
    return diff("conftest.py", one.at_base("conftest.py"), HOOKS)


def plugin(one, rng):
    """Loads a pytest plugin by the settings, from a file that is not a test."""
    settings = one.at_base("setup.cfg")
    if "[tool:pytest]" not in settings:
        changed = settings + "\n[tool:pytest]\naddopts = -p helper_of_all\n"
    else:
        changed = settings.replace("[tool:pytest]\n", "[tool:pytest]\naddopts = -p helper_of_all\n", 1)
    return diff("setup.cfg", settings, changed) + diff("helper_of_all.py", "", HOOKS)


def deaf(one, rng):
    head = "import unittest as _u\nfor _n in dir(_u.TestCase):\n    if _n.startswith('assert'):\n        setattr(_u.TestCase, _n, lambda self, *a, **k: None)\n"
    return diff(one.path, one.before, at_the_end(one.before, head))


def exit_hook(one, rng):
    """Registers an exit hook that sets the exit status to 0."""
    head = "import atexit as _a, os as _os\n_a.register(lambda: _os._exit(0))\n"
    return diff(one.path, one.before, at_the_end(one.before, head))


DJANGO, SYMPY, PYTEST = "django/django", "sympy/sympy", "mwaskom/seaborn"
PLAN = [
    (inverted, DJANGO), (inverted, DJANGO), (inverted, SYMPY),
    (hunk_left_out, DJANGO), (hunk_left_out, SYMPY),
    (raises, DJANGO), (raises, SYMPY),
    (wrong_file, DJANGO), (comment_only, SYMPY), (broken_syntax, DJANGO), (does_not_apply, DJANGO),
    (hangs, SYMPY),
    (tests_emptied, DJANGO), (exits, DJANGO), (exits, SYMPY), (blinds, DJANGO), (runner, DJANGO),
    (site, SYMPY), (hooks, PYTEST), (deaf, DJANGO), (exit_hook, DJANGO), (plugin, PYTEST),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--environments", required=True)
    parser.add_argument("--repos", required=True)
    parser.add_argument("--repo", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--not", dest="left_out", nargs="*", default=[], help="ids of instances to leave out")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    elsewhere = dict(entry.split("=", 1) for entry in args.repo)
    with open(args.environments) as lines:
        environments = {row["instance_id"]: row for row in map(json.loads, lines)}
    with open(args.dataset) as lines:
        rows = [row for row in map(json.loads, lines) if row["instance_id"] in environments]
    instances = []
    for row in rows:
        repository = elsewhere.get(row["repo"]) or str(pathlib.Path(args.repos, row["repo"].replace("/", "__")))
        instances.append(Instance(row, repository, environments[row["instance_id"]]))
    rng.shuffle(instances)
    # Instances with slow tests come last; they would not test more.
    instances.sort(key=lambda one: one.seconds > 10)
    used = set(args.left_out)
    for spoil, repo in PLAN:
        for one in instances:
            if one.id in used or one.row["repo"] != repo:
                continue
            patch = spoil(one.read(), rng)
            if patch:
                used.add(one.id)
                print(json.dumps({"instance_id": one.id, "model_name_or_path": spoil.__name__, "model_patch": patch}))
                break
        else:
            raise SystemExit(f"no instance of {repo} is left for {spoil.__name__}")


if __name__ == "__main__":
    main()
