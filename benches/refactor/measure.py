"""Renames symbols of real projects with `starling refactor rename`, and checks the result without trusting it.

    python benches/refactor/measure.py SOURCES --starling PATH [--count 40] [--seed 1] [--only NAME ...]

SOURCES is a directory with unpacked source distributions (see README.md). The interpreter that runs this script
runs their test suites, too.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import jedi

# The directory of the package, and arguments of pytest for tests that cannot pass here.
PROJECTS = {
    "MarkupSafe-2.1.5": ("src", []),
    "click-8.1.7": ("src", []),
    "itsdangerous-2.2.0": ("src", []),
    "jinja2-3.1.4": ("src", []),
    "more-itertools-10.4.0": (".", []),
    "pluggy-1.5.0": ("src", []),
    "sqlparse-0.5.1": (".", []),
    "tomlkit-0.13.2": (".", ["--ignore", "tests/test_toml_spec_tests.py"]),
}
KINDS = ["function", "method", "overridden", "class", "variable", "private", "common"]
# A name that at least this many definitions of the project have is a common one.
COMMON = 4
NOT_PRODUCT = {"tests", "testing", "test", "docs", "examples", "bench", "scripts", "artwork", "downstream"}
IGNORED = {".git", "__pycache__", ".pytest_cache", ".hypothesis", ".starling"}


@dataclass
class Symbol:
    file: str
    path: str
    line: int
    column: int
    kind: str
    kinds: set = field(default_factory=set)

    @property
    def name(self):
        return self.path.rsplit(".", 1)[-1]


@dataclass
class Row:
    project: str
    symbol: str
    kind: str
    to: str
    result: str = ""
    status: int = -1
    headline: str = ""
    seconds: float = 0.0
    # Seconds from the end of the tests before the change until all of its edits were made.
    edit_seconds: float = 0.0
    files: int = 0
    places: int = 0
    listed: int = 0
    # Tests that passed before and do not pass after the rename.
    lost: list = field(default_factory=list)
    # References of jedi that still have the old name.
    left: list = field(default_factory=list)
    # Those of them that Starling did not list.
    unlisted: list = field(default_factory=list)
    # Renamed places that jedi takes for a use of something else.
    other: list = field(default_factory=list)


def sources(root):
    for path in sorted(root.rglob("*.py")):
        if not IGNORED & set(path.relative_to(root).parts):
            yield path


def definitions(root):
    """Returns all functions, methods, classes and variables of modules, outside of functions."""
    found = []
    bases = {}
    for path in sources(root):
        file = path.relative_to(root).as_posix()
        text = path.read_bytes()
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        lines = text.splitlines()

        def add(node, name, prefix, kind, line, start):
            column = lines[line - 1].find(name.encode(), start)
            found.append(Symbol(file, prefix + name, line, column, kind))

        def walk(body, prefix, in_class):
            for node in body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    kind = "method" if in_class else "function"
                    add(node, node.name, prefix, kind, node.lineno, node.col_offset + 4)
                elif isinstance(node, ast.ClassDef):
                    add(node, node.name, prefix, "class", node.lineno, node.col_offset + 6)
                    named = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
                             for base in node.bases]
                    bases.setdefault(node.name, set()).update(named)
                    walk(node.body, f"{prefix}{node.name}.", True)
                elif isinstance(node, ast.Assign) and not in_class:
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            add(node, target.id, prefix, "variable", target.lineno, target.col_offset)
                elif isinstance(node, ast.AnnAssign) and not in_class and isinstance(node.target, ast.Name):
                    add(node, node.target.id, prefix, "variable", node.lineno, node.col_offset)
                elif isinstance(node, (ast.If, ast.Try)):
                    rest = [part for handler in getattr(node, "handlers", []) for part in handler.body]
                    walk(node.body + node.orelse + rest, prefix, in_class)

        walk(tree.body, "", False)
    return found, bases


def ancestors(name, bases):
    seen, todo = set(), [name]
    while todo:
        for base in bases.get(todo.pop(), ()):
            if base not in seen:
                seen.add(base)
                todo.append(base)
    return seen


def candidates(root):
    """Returns the symbols that can be drawn, each with its kinds."""
    found, bases = definitions(root)
    counts = Counter(one.name for one in found)
    places = Counter((one.file, one.path) for one in found)
    methods = {}
    for one in found:
        if one.kind == "method":
            methods.setdefault(one.name, set()).add(one.path.split(".")[-2])
    chosen = []
    for one in found:
        is_python = one.name.startswith("__") and one.name.endswith("__")
        is_product = not NOT_PRODUCT & set(Path(one.file).parts[:-1]) and "/" in one.file
        if is_python or not is_product or one.name == "_" or places[one.file, one.path] > 1:
            continue
        one.kinds = {one.kind}
        if one.kind == "method":
            own = one.path.split(".")[-2]
            others = methods[one.name] - {own}
            if any(own in ancestors(other, bases) or other in ancestors(own, bases) for other in others):
                one.kinds.add("overridden")
        if one.name.startswith("_"):
            one.kinds.add("private")
        if counts[one.name] >= COMMON:
            one.kinds.add("common")
        chosen.append(one)
    return chosen


def drawn(roots, count, seed):
    """Draws the kinds and the projects in turn, and a symbol of that kind and project at random."""
    chance = random.Random(seed)
    pools = {name: candidates(root) for name, root in roots.items()}
    chosen, names = [], sorted(pools)
    for number in range(50 * count):
        if len(chosen) == count:
            break
        project = names[number % len(names)]
        kind = KINDS[(number // len(names) + number) % len(KINDS)]
        pool = [one for one in pools[project] if kind in one.kinds]
        if pool:
            one = chance.choice(pool)
            pools[project].remove(one)
            chosen.append((project, kind, one))
    return chosen


def new_name(name):
    bare = name.lstrip("_")
    before = name[: len(name) - len(bare)]
    if bare.isupper():
        return f"{before}RENAMED_{bare}"
    return f"{before}Renamed{bare}" if bare[:1].isupper() else f"{before}renamed_{bare}"


def environment(**more):
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_GLOBAL": os.devnull, **more}


def suite(root, package, arguments):
    """Returns the ids of the tests that pass."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = pytest(arguments) + [f"--junitxml={report}"]
        # pytest imports some of these projects itself, so that the path has to be set before it starts.
        own = environment(PYTHONPATH=package)
        subprocess.run(command, cwd=root, env=own, capture_output=True, timeout=600)
        if not report.exists():
            return Counter()
        passed = Counter()
        for case in ElementTree.parse(report).iter("testcase"):
            if not any(part.tag in ("failure", "error", "skipped") for part in case):
                passed[f"{case.get('classname')}::{case.get('name')}"] += 1
        return passed


def pytest(arguments):
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]


def fresh(source, into):
    shutil.copytree(source, into, ignore=shutil.ignore_patterns(*IGNORED))
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@invalid"]
    for arguments in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-qm", "start"]):
        subprocess.run(git + arguments, cwd=into, env=environment(), check=True, capture_output=True)


def rename(starling, root, symbol, to, test):
    command = [starling, "refactor", "rename", f"{symbol.file}::{symbol.path}", to]
    command += ["--approve", "auto", "--json"]
    command += ["--test", " ".join(test)]
    started = time.monotonic()
    process = subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True, timeout=1200)
    seconds = time.monotonic() - started
    events = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    return process, events, seconds


def references(project, symbol, root):
    script = jedi.Script(path=root / symbol.file, project=project)
    found = set()
    for name in script.get_references(symbol.line, symbol.column, scope="project"):
        if name.module_path and Path(name.module_path).is_relative_to(root):
            place = Path(name.module_path).relative_to(root)
            if name.name == symbol.name and not IGNORED & set(place.parts):
                found.add((place.as_posix(), name.line, name.column))
    return found


def words(line):
    return [(match.start(), match.group()) for match in re.finditer(r"\w+", line)]


def compared(before, after, old, new):
    """Returns the places of the old name in code as (file, line, column) that were renamed, and whether anything
    else changed."""
    renamed, strange = set(), []
    for path in before.rglob("*"):
        file = path.relative_to(before)
        if IGNORED & set(file.parts) or not path.is_file():
            continue
        now = after / file
        if not now.exists():
            strange.append(f"{file} is gone")
            continue
        one, two = path.read_bytes(), now.read_bytes()
        if one == two:
            continue
        one, two = one.decode().split("\n"), two.decode().split("\n")
        if len(one) != len(two):
            strange.append(f"{file} has {len(two) - len(one)} more lines")
            continue
        for number, (was, is_) in enumerate(zip(one, two), 1):
            if was == is_:
                continue
            if len(words(was)) != len(words(is_)):
                strange.append(f"{file}:{number} changed otherwise")
                continue
            for (at, word), (_, now_word) in zip(words(was), words(is_)):
                if word == old and now_word == new:
                    renamed.add((file.as_posix(), number, at))
                elif word != now_word:
                    strange.append(f"{file}:{number} changed otherwise")
    return renamed, strange


def meant(project, root, place):
    """Returns where jedi finds the definition of the name at a place."""
    file, line, column = place
    try:
        script = jedi.Script(path=root / file, project=project)
        found = script.goto(line, column, follow_imports=True)
    except Exception:
        return set()
    return {
        (Path(one.module_path).relative_to(root).as_posix(), one.line, one.column)
        for one in found
        if one.module_path and Path(one.module_path).is_relative_to(root)
    }


def told(events):
    """Returns the text in which the places that may be left are listed."""
    texts = []
    for line in events:
        event = line["event"]
        if event["event"] == "proposal_made":
            texts.append(event["reason"])
        if event["event"] == "run_finished":
            texts.append(json.dumps({key: event[key] for key in event if key != "diff"}))
    return "\n".join(texts)


def edit_seconds(events):
    """Returns the seconds from the end of the tests before the change until all edits were proposed."""
    times = {line["event"]["event"]: line["at_ms"] for line in events if line["event"]["event"] != "tests_run"}
    if "proposal_made" not in times:
        return 0.0
    before = [line["at_ms"] for line in events if line["event"].get("phase") == "before"]
    return (times["proposal_made"] - max(before, default=0)) / 1000


def judged(row, process, events, renamed, strange, places, passed, after):
    finished = next((line["event"] for line in reversed(events) if line["event"]["event"] == "run_finished"), {})
    ending = finished.get("ending") or {}
    row.status = process.returncode
    row.headline = ending.get("headline") or "".join(process.stderr.strip().splitlines()[-1:])
    row.places, row.files = len(renamed), len({place[0] for place in renamed})
    if not renamed and not strange:
        row.result = "refused"
        return
    old = row.symbol.rsplit("::")[-1].rsplit(".")[-1]

    def mapped(name):
        return re.sub(rf"(?<![A-Za-z0-9]){re.escape(old)}(?![A-Za-z0-9])", row.to, name)

    lost = passed - after
    gained = after - passed
    for name in list(lost):
        if gained[mapped(name)]:
            del lost[name]
    row.lost = sorted(lost)[:20]
    text = told(events)
    row.left = sorted(places - renamed)
    row.unlisted = [place for place in row.left if f"{place[0]}:{place[1]}" not in text]
    row.listed = len(set(re.findall(r"[\w./-]+\.\w+:\d+", text)))
    row.other += strange
    if lost:
        row.result = "broken, told" if row.status != 0 else "broken"
    elif row.unlisted:
        row.result = "left"
    else:
        row.result = "renamed"


def measure(options, scratch):
    wanted = [name for name in PROJECTS if not options.only or name.rsplit("-", 1)[0] in options.only]
    roots = {name: options.sources / name for name in wanted}
    roots = {name: root.resolve() for name, root in roots.items() if root.is_dir()}
    chosen = drawn(roots, options.count, options.seed)
    print(json.dumps({"seed": options.seed, "projects": sorted(roots), "renames": len(chosen)}), flush=True)
    suites, projects, rows = {}, {}, []
    for number, (name, kind, symbol) in enumerate(chosen):
        if options.number and number not in options.number:
            continue
        package, arguments = PROJECTS[name]
        if name not in suites:
            before = scratch / name
            fresh(roots[name], before)
            suites[name] = suite(before, package, arguments)
            projects[name] = jedi.Project(before, added_sys_path=[str(before / package)])
            print(f"{name}: {sum(suites[name].values())} tests pass", flush=True)
        before = scratch / name
        root = scratch / f"{name}-{number}"
        fresh(roots[name], root)
        row = Row(name, f"{symbol.file}::{symbol.path}", kind, new_name(symbol.name))
        test = ["true"] if options.untested else ["env", f"PYTHONPATH={package}:$PYTHONPATH", *pytest(arguments)]
        process, events, row.seconds = rename(options.starling, root, symbol, row.to, test)
        row.edit_seconds = edit_seconds(events)
        renamed, strange = compared(before, root, symbol.name, row.to)
        places = references(projects[name], symbol, before) if renamed else set()
        own = {(symbol.file, symbol.line, symbol.column)}
        for place in sorted(renamed - places - own):
            if place[0].endswith(".py"):
                found = meant(projects[name], before, place)
                if found and not found & (places | own | renamed):
                    row.other.append(f"{place[0]}:{place[1]}")
        after = suite(root, package, arguments) if renamed else suites[name]
        judged(row, process, events, renamed, strange, places, suites[name], after)
        rows.append(row)
        print(f"{number:2} {row.result:12} {row.status} {row.seconds:5.1f} s ({row.edit_seconds:.1f}) "
              f"{row.places} places in {row.files} files  {name} {row.symbol} ({kind})\n"
              f"     {row.headline}", flush=True)
        details = {"lost": row.lost, "left": row.left, "unlisted": row.unlisted, "other": row.other}
        for title, values in details.items():
            if values:
                print(f"     {title}: {values[:12]}", flush=True)
        if options.keep:
            kept = options.keep / f"{name}-{number}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(root, kept, symlinks=True)
            (options.keep / f"{name}-{number}.jsonl").write_text(process.stdout)
        shutil.rmtree(root)
    return rows


def table(rows):
    titles = "project", "renames", "made", "refused", "suites as before", "places", "uncertain listed", "left untold"
    titles += "s, median", "s for the edits"
    print(f"| {' | '.join(titles)} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in [*sorted({row.project for row in rows}), ""]:
        own = [row for row in rows if name in ("", row.project)]
        made = [row for row in own if row.result != "refused"]
        seconds = sorted(row.seconds for row in own)
        edits = sorted(row.edit_seconds for row in made) or [0.0]
        print(f"| {name or 'all'} | {len(own)} | {len(made)} | {len(own) - len(made)} "
              f"| {sum(not row.lost for row in own)} | {sum(row.places for row in own)} "
              f"| {sum(row.listed > 0 for row in made)} | {sum(bool(row.unlisted) for row in own)} "
              f"| {seconds[len(seconds) // 2]:.1f} | {edits[len(edits) // 2]:.1f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", type=Path)
    parser.add_argument("--starling", required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="names of projects, without versions")
    parser.add_argument("--number", nargs="*", type=int, help="repeat only these of the renames")
    parser.add_argument("--untested", action="store_true", help="let Starling run no tests; the suites are still run")
    parser.add_argument("--keep", type=Path, help="directory in which the renamed projects and the events are kept")
    parser.add_argument("--rows", type=Path, help="file to which the results are written, one JSON object a line")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(options, Path(folder).resolve())
    if options.rows:
        options.rows.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    table(rows)


if __name__ == "__main__":
    main()
