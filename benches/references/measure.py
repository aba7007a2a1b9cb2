"""Compares the references that Starling finds with those of basedpyright or jedi (the peer), for functions and
methods that are sampled with a fixed seed.

    python benches/references/measure.py REPOSITORY [--sample 50] [--seed 1] [--peer basedpyright|jedi]

Requires `pip install basedpyright jedi` and a built bench (see README.md). A reference is a file, a line and a
column; definitions of the symbol itself are left out on both sides.
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
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

HERE = Path(__file__).resolve().parent
LEVELS = {
    "Certain": "certain (the answer)",
    "Likely": "unsure, likely",
    "Possible": "unsure, possible",
}
SKIPPED = {".git", "node_modules", ".venv", "venv"}


def sources(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(files):
            if name.endswith(".py"):
                yield Path(folder, name)


def functions(root, path):
    """Returns the symbol path, line and column (counted from 0) of the names of all functions and methods."""
    text = path.read_bytes()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    lines = text.splitlines()
    file = path.relative_to(root).as_posix()

    def walk(body, prefix, seen):
        for node in ast.iter_child_nodes(body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                seen[node.name] = count = seen.get(node.name, 0) + 1
                name = prefix + node.name + (f"#{count}" if count > 1 else "")
                if not isinstance(node, ast.ClassDef):
                    line = lines[node.lineno - 1]
                    column = line.find(node.name.encode(), node.col_offset + 3)
                    yield f"{file}::{name}", node.lineno - 1, column
                yield from walk(node, name + ".", {})
            else:
                yield from walk(node, prefix, seen)

    yield from walk(tree, "", {})


def definitions(root, symbol):
    """Returns the positions of the definitions of a symbol and of its redefinitions (overloads, setters)."""
    file = symbol.split("::")[0]
    plain = re.sub(r"#\d+", "", symbol)
    return {
        (file, line + 1, column)
        for other, line, column in functions(root, root / file)
        if re.sub(r"#\d+", "", other) == plain
    }


def is_test(file):
    name = file.rsplit("/", 1)[-1]
    return name.startswith("test_") or "tests" in file.split("/")[:-1] or name == "tests.py"


def sample(root, count, seed):
    """Returns a sample of functions. Tests are left out: they have no references, because only the runner calls
    them."""
    found = [
        symbol
        for path in sources(root)
        if not is_test(path.relative_to(root).as_posix())
        for symbol in functions(root, path)
    ]
    return random.Random(seed).sample(sorted(found), min(count, len(found)))


class Pyright:
    def __init__(self, root):
        self.root = root
        self.config = None
        python = Path(sys.executable).with_name("basedpyright-langserver")
        self.process = subprocess.Popen(
            [str(python), "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.answers = {}
        self.arrived = threading.Condition()
        self.lock = threading.Lock()
        threading.Thread(target=self.listen, daemon=True).start()
        self.next = 0
        folder = {"uri": root.as_uri(), "name": root.name}
        self.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": root.as_uri(),
                "capabilities": {"workspace": {"configuration": True}},
                "workspaceFolders": [folder],
            },
        )
        self.tell("initialized", {})
        self.opened = set()

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.lock:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.process.stdin.flush()

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def ask(self, method, params, seconds=600):
        self.next += 1
        key = self.next
        self.send({"id": key, "method": method, "params": params})
        with self.arrived:
            if not self.arrived.wait_for(lambda: key in self.answers, seconds):
                raise TimeoutError(method)
            return self.answers.pop(key)

    def listen(self):
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            message = json.loads(self.process.stdout.read(length))
            if "method" in message:
                if "id" in message:
                    self.send({"id": message["id"], "result": self.reply(message)})
            elif "id" in message:
                with self.arrived:
                    self.answers[message["id"]] = message.get("result")
                    self.arrived.notify_all()

    def reply(self, message):
        if message["method"] == "workspace/configuration":
            settings = {
                "analysis": {
                    "diagnosticMode": "openFilesOnly",
                    "typeCheckingMode": "off",
                    "autoSearchPaths": True,
                },
                "pythonPath": sys.executable,
            }
            by_section = {
                "basedpyright": settings,
                "basedpyright.analysis": settings["analysis"],
                "python": settings,
                "python.analysis": settings["analysis"],
            }
            return [by_section.get(item.get("section")) for item in message["params"]["items"]]
        return None

    def references(self, file, line, column):
        path = self.root / file
        uri = path.as_uri()
        if uri not in self.opened:
            self.opened.add(uri)
            document = {
                "uri": uri,
                "languageId": "python",
                "version": 1,
                "text": path.read_text(encoding="utf-8", errors="replace"),
            }
            self.tell("textDocument/didOpen", {"textDocument": document})
        answer = self.ask(
            "textDocument/references",
            {
                "textDocument": {"uri": uri},
                "position": {"line": line, "character": column},
                "context": {"includeDeclaration": True},
            },
        )
        for place in answer or []:
            found = Path(unquote(urlparse(place["uri"]).path))
            start = place["range"]["start"]
            if found.is_relative_to(self.root):
                yield found.relative_to(self.root).as_posix(), start["line"] + 1, start["character"]

    def close(self):
        self.process.kill()
        self.process.wait()


class Jedi:
    def __init__(self, root):
        import jedi

        self.jedi = jedi
        self.root = root
        self.project = jedi.Project(root)

    def references(self, file, line, column):
        script = self.jedi.Script(path=self.root / file, project=self.project)
        for name in script.get_references(line + 1, column, scope="project"):
            if name.module_path and Path(name.module_path).is_relative_to(self.root):
                path = Path(name.module_path).relative_to(self.root).as_posix()
                yield path, name.line, name.column

    def close(self):
        pass


def name_at(line, column):
    return re.match(r"\w*", line[column:].decode(errors="replace"))[0]


def ours(binary, root, symbols):
    process = subprocess.run(
        [binary, str(root)],
        input="\n".join(symbols) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    return lines[0], lines[1:]


def copied(root, into):
    """Copies the sources without configuration files that would restrict the peer to a part of them."""
    for path in sources(root):
        place = into / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    (into / "pyrightconfig.json").write_text('{"typeCheckingMode": "off"}')


def built():
    target = HERE.parent.parent / "target/release/deps"
    found = [path for path in target.glob("references-*") if not path.suffix]
    if not found:
        sys.exit("not built: cargo bench --no-default-features --bench references --no-run")
    return str(max(found, key=lambda path: path.stat().st_mtime))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=Path)
    parser.add_argument("--sample", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peer", choices=["basedpyright", "jedi"], default="basedpyright")
    parser.add_argument("--cache", type=Path, help="file in which the peer's answers are cached")
    parser.add_argument("--binary", help="the built bench binary (default: the newest in target/release/deps)")
    parser.add_argument("--show", action="store_true", help="print every difference")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / options.repository.resolve().name
        copied(options.repository.resolve(), root)
        measure(root, options)


def measure(root, options):
    chosen = sample(root, options.sample, options.seed)
    binary = options.binary or built()
    facts, answers = ours(binary, root, [symbol for symbol, _, _ in chosen])

    known = {}
    if options.cache and options.cache.exists():
        known = json.loads(options.cache.read_text())
    peer = None
    totals = {level: [0, 0] for level in LEVELS}
    referenced, seconds_peer, seconds_ours, missed_all = 0, 0.0, 0.0, 0
    for (symbol, line, column), answer in zip(chosen, answers, strict=True):
        key = f"{options.peer} {root.name} {symbol}"
        if key not in known:
            peer = peer or {"basedpyright": Pyright, "jedi": Jedi}[options.peer](root)
            start = time.monotonic()
            places = sorted(set(peer.references(symbol.split("::")[0], line, column)))
            known[key] = [time.monotonic() - start, places]
            if options.cache:
                options.cache.write_text(json.dumps(known))
        seconds, places = known[key]
        own = definitions(root, symbol)
        truth = {tuple(place) for place in places} - own
        seconds_peer += seconds
        seconds_ours += answer["seconds"]
        referenced += len(truth)
        base = symbol.rsplit(".", 1)[-1].rsplit("::", 1)[-1].split("#")[0]
        bases = {base, symbol.split(".")[-2].split("::")[-1]} if base in ("__init__", "__new__") else {base}
        found = {}
        for use in answer["uses"]:
            place = (use["file"], use["line"], use["column"])
            line_text = (root / use["file"]).read_bytes().splitlines()[use["line"] - 1]
            # The peer does not report uses under another name (`import f as g`), and does not count
            # `m.C()` as a call of `C.__init__`.
            is_made = name_at(line_text, use["column"]) != base and b"." in line_text[use["column"] - 1 :][:1]
            if place not in own and not is_made and name_at(line_text, use["column"]) in bases:
                found[place] = use["certainty"]
        for place, certainty in found.items():
            totals[certainty][place not in truth] += 1
        missed = truth - found.keys()
        missed_all += len(missed)
        if options.show:
            wrong = [place for place in found if place not in truth]
            if missed or wrong:
                print(f"{symbol}: {len(truth)} references")
            for place in sorted(missed):
                print("  missed", *place)
            for place in sorted(wrong):
                print("  wrong ", *place, found[place])
    if peer:
        peer.close()

    print(json.dumps({"repository": root.name, "sampled": len(chosen), "references": referenced}))
    right = wrong = 0
    for level, told in LEVELS.items():
        hits, misses = totals[level]
        right, wrong = right + hits, wrong + misses
        print(
            f"{told:28} {hits:5} in the peer's answer, {misses:5} not;"
            f"  all so far: precision {right / max(1, right + wrong):.3f}"
            f"  recall {right / max(1, referenced):.3f}"
        )
    print(f"seconds: {seconds_ours:.3f} ours, {seconds_peer:.1f} {options.peer}'s; reading: {facts}")


if __name__ == "__main__":
    main()
