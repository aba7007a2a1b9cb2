"""Runs the program for Windows under Wine and compares what it does with what is expected.

Usage: checks.py BUILD PREFIX, with the directory of cargo's build and that of Wine (`WINEPREFIX`).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from editor import Editor

BUILD, PREFIX = Path(sys.argv[1]), Path(sys.argv[2])
REPOSITORY = Path(__file__).resolve().parents[2]
DRIVE = PREFIX / "drive_c"
# A space and a letter outside of ASCII, as in many names of Windows users.
PROJECT = DRIVE / "work" / "my pröject"
ROOT = "C:\\work\\my pröject"
LIMIT = 180
NO_SANDBOX = "no sandbox can be created on this system"

SHAPES = "def area(width, height):\n    return width * height\n\n\ndef square(side):\n    return area(side, side)\n"
TEST = "from pkg.shapes import area\n\n\ndef test_area():\n    assert area(2, 3) == 6\n"


class Failure(Exception):
    """What was found and what was expected."""


def expect(found, wanted, what):
    if found != wanted:
        raise Failure(f"{what}: {found!r} instead of {wanted!r}")


def expect_in(wanted, text, what):
    if wanted not in text:
        raise Failure(f"{what} lacks {wanted!r}:\n{text}")


def expect_not_in(unwanted, text, what):
    if unwanted in text:
        raise Failure(f"{what} has {unwanted!r}:\n{text}")


def command(program, *arguments):
    return ["wine", str(PREFIX / "start.exe"), str(program), *arguments]


class Said:
    """What a program printed, and its exit status."""

    def __init__(self, arguments, directory, status, program=BUILD / "starling.exe", **variables):
        done = subprocess.run(
            command(program, *arguments),
            cwd=directory,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
        )
        self.out, self.err = (text.decode().replace("\r\n", "\n") for text in (done.stdout, done.stderr))
        self.both = f"{self.out}\n{self.err}"
        if done.returncode != status:
            line = " ".join(arguments)
            raise Failure(f"`{line}` exits with {done.returncode} instead of {status}:\n{self.both}")


def starling(*arguments, directory=PROJECT, status=0, **variables):
    return Said(arguments, directory, status, **variables)


def windows_path(path):
    """The path of Windows for a path of Linux on the drive C."""
    return "C:\\" + str(Path(path).relative_to(DRIVE)).replace("/", "\\")


def linux_path(path):
    """The path of Linux for a path of Windows on the drive C."""
    return DRIVE / path.removeprefix("C:\\").replace("\\", "/")


def put(files, directory):
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def cache():
    """Starling's directory of the user."""
    [found] = DRIVE.glob("users/*/AppData/Local/starling")
    return found


def fresh():
    """Removes what earlier checks left, and makes the project. Its code has the line ends of Windows."""
    for old in [DRIVE / "work", *DRIVE.glob("users/*/AppData/*/starling")]:
        shutil.rmtree(old, ignore_errors=True)
    put({"pkg/__init__.py": "", "pkg/shapes.py": SHAPES.replace("\n", "\r\n"), "test_shapes.py": TEST}, PROJECT)
    put({"pyproject.toml": '[project]\nname = "shapes"\n'}, PROJECT)


def version():
    found = re.search(r'^version = "(.+)"$', (REPOSITORY / "Cargo.toml").read_text(), re.M).group(1)
    expect(starling("--version").out, f"starling {found}\n", "--version")


def doctor():
    said = starling("doctor", "--model", "replay:nothing", status=1)
    lines = dict(re.findall(r"^(\w+ +(?:configuration|cache|sandbox|code))  +(.+)$", said.out, re.M))
    by_name = {" ".join(name.split()): text for name, text in lines.items()}
    expect_in("FAIL sandbox", by_name, "the findings")
    expect_in("no sandbox, so no tests can run", by_name["FAIL sandbox"], "the finding of the sandbox")
    expect_in("run Starling in WSL", said.out, "the advice")
    # Advice for Linux is of no use here.
    expect_not_in("user namespaces", said.out, "the advice")
    expect_in("\\AppData\\Local\\starling", by_name["ok cache"], "the finding of the cache")
    expect(by_name["ok cache"][:9], "C:\\users\\", "the start of the cache directory")
    expect_in(f"{ROOT}\\.starling\\config.toml", said.out, "the configuration of the project")
    expect_in("3 Python files", by_name["ok code"], "the finding of the code")
    expect(said.err, "", "stderr")
    said = starling("doctor", "-c", "sandbox.missing=allow", "--json", status=1)
    findings = {finding["what"]: finding for finding in json.loads(said.out)}
    expect(findings["sandbox"]["health"], "warn", "the sandbox where tests are allowed without one")


def index():
    for from_cache in (False, True):
        found = json.loads(starling("index", "--json").out)
        counts = {key: found[key] for key in ("files", "symbols", "from_cache", "skipped")}
        # Each file is a symbol, too.
        expect(counts, {"files": 3, "symbols": 6, "from_cache": from_cache, "skipped": []}, "index")
    expect(len(list(cache().glob("index/*/manifest"))), 1, "the number of indexes")


def locate():
    found = json.loads(starling("locate", "--json", "the area of a rectangle").out)["symbols"][0]
    place = {key: found[key] for key in ("path", "symbol", "line", "signature")}
    wanted = {"path": "pkg/shapes.py", "symbol": "area", "line": 1, "signature": "def area(width, height):"}
    expect(place, wanted, "the first symbol")


def code():
    for path in ("pkg/shapes.py", "pkg\\shapes.py", f"{ROOT}\\pkg\\shapes.py"):
        expect(starling("definition", f"{path}:6:13").out, "pkg/shapes.py:1  function  area\n", f"definition at {path}:6:13")
        found = starling("references", f"{path}::area").out.splitlines()
        wanted = ["pkg/shapes.py:6:12: return area(side, side)  in square", "test_shapes.py:1:24: from pkg.shapes import area"]
        expect([line for line in wanted if line not in found], [], f"missing references of {path}::area in {found}")
    # A device, a stream and a name without its last dot: never read, by no name.
    for path in ("nul.py", "pkg/shapes.py:x", "pkg/shapes.py."):
        said = starling("references", f"{path}::area", status=2)
        expect_in("does not take this name literally", said.both, f"references in {path}")


def trust():
    put({".starling/config.toml": "limits.calls = 7\n"}, PROJECT)
    expect_in("not read, because the project is not trusted", starling("doctor", status=1).out, "doctor")
    starling("trust")
    expect_in(ROOT, starling("trust", "--list").out, "the list of trusted projects")
    found = json.loads(starling("config", "explain", "limits.calls", "--json").out)
    expect_in("7", json.dumps(found), "limits.calls of a trusted project")
    starling("trust", "--remove")
    shutil.rmtree(PROJECT / ".starling")


def same_cache():
    """Processes share the index: its lock lets one write at a time."""
    put({f"pkg/more{number}.py": f"def more{number}():\n    pass\n" for number in range(50)}, PROJECT)
    line = command(BUILD / "starling.exe", "index", "--json")
    running = [subprocess.Popen(line, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(3)]
    for process in running:
        out, _ = process.communicate(timeout=LIMIT)
        expect((process.returncode, json.loads(out)["files"]), (0, 53), "exit status and files")
    # Wine 8, unlike Windows 10, replaces no file that another process reads, so perhaps none of them stored the index.
    starling("index")
    expect(json.loads(starling("index", "--json").out)["from_cache"], True, "from_cache after others")
    for file in PROJECT.glob("pkg/more*.py"):
        file.unlink()


def demo():
    said = starling("demo", "--replay", "--keep", status=3)
    expect_in(f"tests cannot run: {NO_SANDBOX}", said.both, "the warning")
    expect_in("Done, untested: no test ran", said.out, "the end")
    expect_in("run Starling in WSL", said.both, "the advice")
    for number in range(1, 6):
        expect_in(f"✓ #{number} changed", said.out, "the story")
    kept = re.search(r"the project was kept in (C:.+)", said.both).group(1).strip()
    project = linux_path(kept)
    expect_in("def season(day):", (project / "parcels/rates.py").read_text(), "the changed file")
    for file in REPOSITORY.glob("fixtures/replay-project/parcels/*.py"):
        original, found = file.read_bytes(), (project / "parcels" / file.name).read_bytes()
        expect(found != original, file.name not in ("__init__.py",), f"whether {file.name} is changed")
    starling("undo", "--yes", "--repo", kept)
    for file in REPOSITORY.glob("fixtures/replay-project/parcels/*.py"):
        expect((project / "parcels" / file.name).read_bytes(), file.read_bytes(), f"{file.name} after undo")
    shutil.rmtree(project.parent)


def demo_without_shell():
    """With the user's leave tests run without a sandbox, by the shell of Git for Windows, which is not there."""
    said = starling("demo", "--replay", "-c", "sandbox.missing=allow", status=3)
    expect_in("no shell runs the test command: install Git for Windows", said.both, "the warning")


def editor():
    """A run in the editor: the answers are recorded, the edits are real. VS Code's spelling of URIs is kept."""
    files = {
        file.relative_to(REPOSITORY / "fixtures/replay-project").as_posix(): file.read_text()
        for file in REPOSITORY.glob("fixtures/replay-project/**/*")
        if file.is_file()
    }
    project = DRIVE / "work" / "parcels of ours"
    # One file has the line ends of Windows, and is closed while it is changed.
    put({**files, "parcels/invoice.py": files["parcels/invoice.py"].replace("\n", "\r\n")}, project)
    recording = DRIVE / "work" / "recording.jsonl"
    shutil.copy(REPOSITORY / "fixtures/replay/parcels.jsonl", recording)
    started = next(
        event["event"]["run_started"] if "run_started" in event["event"] else event["event"]
        for event in map(json.loads, recording.read_text().splitlines())
        if "task" in json.dumps(event.get("event", ""))
    )
    line = command(BUILD / "starling.exe", "lsp", "--model", f"replay:{windows_path(recording)}")
    with Editor(line, project, DRIVE) as editor:
        name = editor.initialize()
        expect(name, "starling", "the server's name")
        editor.open("parcels/quote.py")
        lenses = editor.request("textDocument/codeLens", {"textDocument": {"uri": editor.uri("parcels/quote.py")}})
        expect(isinstance(lenses, list), True, f"whether lenses are a list: {lenses}")
        mentions = editor.request("starling/mentions", {"mention": "#Invoice.tot"})["items"]
        expect([item["detail"].partition(":")[0] for item in mentions[:1]], ["parcels/invoice.py"], "the mention")
        task = {"task": started["task"], "driver": started["driver"], "approve": "proxy", "ask_intent": "contract"}
        editor.request("workspace/executeCommand", {"command": "starling.run", "arguments": [task]})
        end = editor.wait_for_event("run_finished", LIMIT)
        expect_in("no test ran", json.dumps(end), "the end of the run")
        # What the server sends about an open document has the URI under which the editor opened it.
        expect("file:///c%3A/work/parcels%20of%20ours/parcels/quote.py" in editor.edited, True, f"edited {editor.edited}")
        expect("file:///C:/work/parcels%20of%20ours/parcels/invoice.py" in editor.edited, True, f"edited {editor.edited}")
        expect_in("def quote(parcel, *, on):", editor.text("parcels/quote.py"), "the open document")
        closed = (project / "parcels/invoice.py").read_bytes().decode()
        expect_in("on=self.day", closed, "the closed file")
        expect(re.findall(r"(?<!\r)\n", closed), [], "line ends of Linux in the closed file")
        expect(editor.leave(LIMIT), 0, "the exit status after shutdown and exit")


def abandoned_editor():
    """The server ends when its editor is gone."""
    with Editor(command(BUILD / "starling.exe", "lsp"), PROJECT, DRIVE) as editor:
        editor.initialize()
        editor.close_input()
        expect(editor.wait(LIMIT), 1, "the exit status without shutdown")


def unit_tests():
    [tests] = sorted(BUILD.glob("deps/starling_platform-*.exe"), key=lambda path: path.stat().st_mtime)[-1:]
    # Wine 8 makes no symbolic links.
    without = ("--skip", "symbolic_links")
    said = Said(without, REPOSITORY / "crates/platform", 0, program=tests)
    print("".join(f"    {line}\n" for line in said.out.splitlines() if line.startswith("test ")), end="")
    expect_in("test result: ok", said.out, "the unit tests")


CHECKS = [version, doctor, index, locate, code, trust, same_cache, demo, demo_without_shell, editor, abandoned_editor, unit_tests]


def main():
    chosen = [check for check in CHECKS if check.__name__ in sys.argv[3:] or not sys.argv[3:]]
    failed = 0
    fresh()
    for check in chosen:
        began = time.monotonic()
        try:
            check()
            said = "ok"
        except (Failure, subprocess.TimeoutExpired, OSError, ValueError, KeyError, AttributeError) as error:
            failed += 1
            said = f"FAILED: {type(error).__name__}: {error}"
        print(f"{check.__name__} ({time.monotonic() - began:.1f} s): {said}", flush=True)
    print(f"\n{len(chosen) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
