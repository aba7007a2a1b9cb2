"""Plants bugs in projects: one operator is changed in the code, so that tests fail which passed before.

    python benches/locate/plant.py PROJECTS PYTHON COUNT SEED > planted.jsonl

PROJECTS contains unpacked source distributions with pytest suites. PYTHON is an interpreter with pytest
and what the suites need. For each project, COUNT bugs are planted. Each line of the result names the
project, the file, the line, the changed text, and one failing test, drawn by the seed.
"""

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SWAPS = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"),
}
ASIDE = {"tests", "test", "testing", "docs", "examples", "benchmarks", "bench", "setup.py", "conftest.py", "noxfile.py"}
OPTIONS = ["-q", "--tb=no", "-p", "no:cacheprovider", "-rfE"]
SECONDS = 90
# More failures are not needed, and a bug that breaks everything is easy to find.
FAILURES = 12


def places(tree):
    """Yields each operator with the position after its left operand and that before its right one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield node.ops[0], node.left, node.comparators[0]
        elif isinstance(node, ast.BoolOp):
            yield node.op, node.values[0], node.values[1]
        elif isinstance(node, ast.BinOp):
            yield node.op, node.left, node.right


def changes(text):
    """Returns the changes of one operator: the line number, and the whole text after the change."""
    lines = text.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found = []
    for operator, left, right in places(ast.parse(text)):
        swap = SWAPS.get(type(operator))
        if swap is None:
            continue
        start = starts[left.end_lineno - 1] + left.end_col_offset
        end = starts[right.lineno - 1] + right.col_offset
        between = text.encode()[start:end].decode()
        old, new = swap
        pattern = r"\s+".join(re.escape(word) for word in old.split())
        match = re.search(rf"(?<!\w){pattern}(?!\w)" if old[0].isalpha() else pattern, between)
        if match is None or "#" in between:
            continue
        changed = between[: match.start()] + new + between[match.end() :]
        line = left.end_lineno + between[: match.start()].count("\n")
        after = text.encode()[:start].decode() + changed + text.encode()[end:].decode()
        found.append((line, f"{old} -> {new}", after))
    return found


def failing(project, python):
    """Runs the tests. Returns the failing ones, or None if they were not collected or did not end."""
    environment = dict(os.environ, PYTHONPATH=f"{project}:{project}/src", PYTHONDONTWRITEBYTECODE="1")
    command = [python, "-m", "pytest", f"--maxfail={FAILURES}", *OPTIONS]
    try:
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return None
    lines = done.stdout.splitlines()
    if done.returncode not in (0, 1) or any(line.startswith("ERROR ") for line in lines):
        return None
    names = [line[len("FAILED ") :].split(" - ")[0] for line in lines if line.startswith("FAILED ")]
    return [name for name in names if "::" in name]


def plant(project, python, count, draw):
    assert failing(project, python) == [], f"the suite of {project} does not pass"
    sites = []
    for path in sorted(project.rglob("*.py")):
        parts = path.relative_to(project).parts
        if not ASIDE & set(parts) and not parts[-1].startswith("test"):
            sites.extend((path, *change) for change in changes(path.read_text()))
    draw.shuffle(sites)
    planted = 0
    for path, line, operator, after in sites:
        before = path.read_text()
        path.write_text(after)
        try:
            names = failing(project, python)
        finally:
            path.write_text(before)
        if not names or len(names) >= FAILURES:
            continue
        row = {
            "project": project.name,
            "file": path.relative_to(project).as_posix(),
            "line": line,
            "operator": operator,
            "text": after,
            "failing": len(names),
            "test": draw.choice(names),
        }
        print(json.dumps(row), flush=True)
        planted += 1
        if planted == count:
            return


def main():
    projects, python, count, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    for project in sorted(one for one in projects.iterdir() if one.is_dir()):
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / project.name
            shutil.copytree(project, copy)
            plant(copy, python, count, random.Random(f"{seed} {project.name}"))


if __name__ == "__main__":
    main()
