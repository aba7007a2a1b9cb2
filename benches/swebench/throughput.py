"""Measures how many instances per hour `starling swebench run` completes with 1, 2, 4 and 8 workers, with an
endpoint that replies after some seconds, as models do. The instances are small, so that most of the time is
spent waiting for the endpoint.

    python benches/swebench/throughput.py target/release/starling [--latency 5] [--instances 16]
"""

import argparse
import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

CODE = "def double(n):\n    return n + n + 1\n"
MENDED = "def double(n):\n    return n + n\n"
TEST = "import unittest\n\nimport code_of\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(code_of.double(2), 4)\n"


class Endpoint(http.server.BaseHTTPRequestHandler):
    latency = 5.0
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(self.latency)
        tools = [tool["function"]["name"] for tool in asked.get("tools", [])]
        delta = {"role": "assistant", "content": "ACCEPT"}
        finish = "stop"
        if "wake" in tools:
            pick = {"symbols": [{"symbol": "code_of.py::double", "why": "w", "source": MENDED}]}
            call = {"name": "wake", "arguments": json.dumps(pick)}
            delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "c", "type": "function", "function": call}]}
            finish = "tool_calls"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        chunks = [
            {"choices": [{"index": 0, "delta": delta}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {"choices": [], "usage": usage},
        ]
        frame = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        body = "".join(f"data: {json.dumps(frame | chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


def data(root, count):
    repository = root / "repos" / "a__b"
    repository.mkdir(parents=True)
    (repository / "code_of.py").write_text(CODE)
    (repository / "test_it.py").write_text(TEST)
    git = ["git", "-C", repository, "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "base"]):
        subprocess.run(git + words, check=True)
    commit = subprocess.run(git + ["rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    with open(root / "set.jsonl", "w") as file:
        for at in range(count):
            row = {"instance_id": f"a__b-{at}", "repo": "a/b", "base_commit": commit, "problem_statement": "double(2) gives 5"}
            file.write(json.dumps(row) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("starling")
    parser.add_argument("--latency", type=float, default=5.0)
    parser.add_argument("--instances", type=int, default=16)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4, 8])
    args = parser.parse_args()
    Endpoint.latency = args.latency
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    starling = pathlib.Path(args.starling).resolve()
    print("| workers | seconds | instances an hour | of ideal | median overhead, s | memory, MB | load |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=pathlib.Path.home()) as folder:
        root = pathlib.Path(folder)
        data(root, args.instances)
        world = os.environ | {
            "STARLING_CACHE_DIR": str(root / "cache"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
            "OPENAI_API_KEY": "none",
        }
        alone = None
        for workers in args.workers:
            began = time.monotonic()
            command = [starling, "swebench", "run", "--dataset", root / "set.jsonl", "--repos", root / "repos"]
            command += ["--out", root / f"out{workers}", "--model", "openai:m", "--workers", str(workers), "--json"]
            done = subprocess.run(command, env=world, capture_output=True, text=True)
            took = time.monotonic() - began
            report = json.loads(done.stdout)
            assert report["settled"] == args.instances, done.stderr
            alone = alone or took * workers
            print(
                f"| {workers} | {took:.1f} | {3600 * args.instances / took:.0f} | {alone / workers / took:.2f} "
                f"| {report['median_overhead_s']:.2f} | {report['most_memory_mb']:.0f} | {os.getloadavg()[0]:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
