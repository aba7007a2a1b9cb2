#!/usr/bin/env python3
"""Measures how long an editor waits for replies after a keystroke while the index is built for the first time.

    keystrokes.py STARLING [--files 6000] [--rounds 3] [--rate 20]

Creates a project of `--files` Python files. Each round starts `starling lsp` twice and asks it a question, which
needs the index: first with an empty cache, then with a stored index (the control). In both cases, the script types
`--rate` characters per second, and requests lenses, code actions and a hover after each, as editors do. It measures
the keystrokes until the index is built, and the same number in the control. Prints the median, the 99th percentile
and the maximum of both in milliseconds, and the ratio of the percentiles.
"""
import argparse, json, os, pathlib, shutil, statistics, subprocess, tempfile, threading, time


def make(root, files):
    lines = "\n\n".join(
        f'def f{n}(a, b={n}):\n    """Adds."""\n    total = a + b\n    for i in range({n}):\n'
        f"        total += g{n}(i)\n    return total\n\n\nclass C{n}:\n    def m(self, x):\n        return f{n}(x)"
        for n in range(40)
    )
    for n in range(files):
        path = root / f"p{n % 60}" / f"m{n}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"import os\n\nX{n} = {n}\n\n\n{lines}\n")
    (root / "main.py").write_text("def main(x):\n    return x\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)


class Client:
    def __init__(self, starling, root, cache):
        # No server listens on this port. The question fails, but only after the index was built for
        # it.
        env = dict(os.environ, STARLING_CACHE_DIR=str(cache), OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_API_KEY="x")
        self.process = subprocess.Popen(
            [starling, "lsp", "--model", "openai:none"], cwd=root, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.answers, self.lock, self.number = {}, threading.Condition(), 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        stream = self.process.stdout
        while True:
            size = 0
            while line := stream.readline().strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    size = int(value)
            if not size:
                return
            message = json.loads(stream.read(size))
            if "method" in message and "id" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
            elif "id" in message:
                with self.lock:
                    self.answers[message["id"]] = time.perf_counter()
                    self.lock.notify_all()

    def send(self, message):
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method, **params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def wait(self, number):
        with self.lock:
            if not self.lock.wait_for(lambda: number in self.answers, timeout=60):
                raise SystemExit("no answer within 60 s")
            return self.answers[number]


def type_on(starling, root, cache, rate, until):
    """Returns the milliseconds from each keystroke to the last reply to its requests."""
    client = Client(starling, root, cache)
    uri = (root / "main.py").as_uri()
    client.wait(client.ask("initialize", processId=None, rootUri=root.as_uri(), capabilities={
        "textDocument": {"codeLens": {}, "hover": {}, "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}}}))
    client.notify("initialized")
    client.notify("textDocument/didOpen", textDocument={"uri": uri, "languageId": "python", "version": 1, "text": (root / "main.py").read_text()})
    question = {"question": "Who calls main?"}
    client.ask("workspace/executeCommand", command="starling.ask", arguments=[question])
    took, version, began = [], 1, time.perf_counter()
    while until(len(took), time.perf_counter() - began):
        due = time.perf_counter() + 1 / rate
        version += 1
        place = {"line": 1, "character": 11}
        start = time.perf_counter()
        client.notify("textDocument/didChange", textDocument={"uri": uri, "version": version},
                      contentChanges=[{"range": {"start": place, "end": place}, "text": "x"}])
        document = {"uri": uri}
        asked = [
            client.ask("textDocument/codeLens", textDocument=document),
            client.ask("textDocument/codeAction", textDocument=document, range={"start": place, "end": place}, context={"diagnostics": []}),
            client.ask("textDocument/hover", textDocument=document, position={"line": 0, "character": 5}),
        ]
        took.append(1000 * (max(map(client.wait, asked)) - start))
        time.sleep(max(0, due - time.perf_counter()))
    client.wait(client.ask("shutdown"))
    client.notify("exit")
    client.process.wait(timeout=20)
    return took


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("starling")
    options.add_argument("--files", type=int, default=6000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rate", type=float, default=20)
    given = options.parse_args()
    starling = str(pathlib.Path(given.starling).resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        root = folder / "project"
        root.mkdir()
        make(root, given.files)
        cold, control, index = [], [], []
        for number in range(given.rounds):
            cache = folder / f"cache{number}"
            began = time.perf_counter()
            env = dict(os.environ, STARLING_CACHE_DIR=str(folder / f"alone{number}"))
            subprocess.run([starling, "index"], cwd=root, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seconds = time.perf_counter() - began
            index.append(seconds)
            cold += type_on(starling, root, cache, given.rate, lambda count, now: now < seconds)
            most = len(cold) - len(control)
            control += type_on(starling, root, folder / f"alone{number}", given.rate, lambda count, now: count < most)
            shutil.rmtree(cache)
        for name, values in (("while the index is made", cold), ("control", control)):
            print(f"{name:24} keystrokes {len(values):4}  median {statistics.median(values):6.1f}  p99 {percentile(values, .99):6.1f}  worst {max(values):6.1f} ms")
        print(f"ratio of the 99th percentiles {percentile(cold, .99) / percentile(control, .99):.1f}; the index alone took {statistics.median(index):.1f} s")


if __name__ == "__main__":
    main()
