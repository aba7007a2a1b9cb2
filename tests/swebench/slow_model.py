#!/usr/bin/env python3
"""A scripted model behind a socket file that thinks for a while: `slow_model.py SOCKET SECONDS`. It mends
what planted.py plants. It says "ready" when it listens."""

import json
import socketserver
import sys
import time

from planted import MENDED


def reply(request):
    offered = {tool["name"] for tool in request["tools"]}
    calls, text = [], "ACCEPT"
    if "wake" in offered:
        pick = {"symbols": [{"symbol": "code_of.py::double", "why": "w", "source": MENDED}]}
        calls, text = [{"id": "c", "name": "wake", "arguments": json.dumps(pick)}], ""
    return {"model": "slow", "text": text, "tool_calls": calls, "finish": "stop",
            "usage": {"prompt": 1, "cached": 0, "output": 1}, "cost": 0.0, "calls": 1}


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        request = json.loads(self.rfile.readline())
        time.sleep(float(sys.argv[2]))
        self.wfile.write((json.dumps(reply(request)) + "\n").encode())


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    with Server(sys.argv[1], Handler) as server:
        print("ready", flush=True)
        server.serve_forever()
