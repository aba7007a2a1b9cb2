#!/usr/bin/env python3
"""Makes a repository with a slip, instances of it as SWE-bench writes them, and a recorded model that
mends it: `planted.py DIR [COUNT] [WRONG]`. The first WRONG instances are those that the recording does
not mend: they are of a second repository with another slip."""

import json
import subprocess
import sys
from pathlib import Path

CODE = "def double(n):\n    return n + n + 1\n"
MENDED = "def double(n):\n    return n + n\n"
OTHER = "def double(n):\n    return n + n + 1\n\n\nVALUE = double(3) + 1\n"
OLD_TEST = "import unittest\n\nimport code_of\n\n\nclass T(unittest.TestCase):\n    def test_there(self):\n        self.assertTrue(code_of)\n"
NEW_TEST = "\n    def test_double(self):\n        self.assertEqual(code_of.double(2), 4)\n"
STRICTER = "\n    def test_value(self):\n        self.assertEqual(code_of.VALUE, 6)\n"


def git(folder, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    done = subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True, text=True)
    return done.stdout


def repository(folder, before, after, test_after):
    """The base commit, the change upstream and its tests, as diffs."""
    folder.mkdir(parents=True)
    (folder / "code_of.py").write_text(before)
    (folder / "test_it.py").write_text(OLD_TEST)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "base")
    base = git(folder, "rev-parse", "HEAD").strip()
    (folder / "code_of.py").write_text(after)
    patch = git(folder, "diff")
    git(folder, "checkout", "-q", "code_of.py")
    (folder / "test_it.py").write_text(OLD_TEST + test_after)
    test_patch = git(folder, "diff")
    git(folder, "checkout", "-q", "test_it.py")
    return base, patch, test_patch


def exchange(conversation, role, text, calls):
    reply = {"model": "recorded", "text": text, "tool_calls": calls, "finish": "stop",
             "usage": {"prompt": 1, "cached": 0, "output": 1}, "cost": 0.0, "calls": 1}
    return {"exchange": {"conversation": conversation, "role": role, "ordinal": 0, "prompt": [], "tools": [],
                         "reply": {"Ok": reply}, "millis": 1}}


def recording():
    pick = {"symbols": [{"symbol": "code_of.py::double", "why": "w", "source": MENDED}]}
    wake = [{"id": "c", "name": "wake", "arguments": json.dumps(pick)}]
    return [exchange("scout", "scout", "", wake), exchange("proxy code_of.py::double", "proxy", "ACCEPT", [])]


def main(root, count=1, wrong=0):
    root = Path(root)
    good = repository(root / "repos/a__b", CODE, MENDED, NEW_TEST)
    bad = repository(root / "repos/c__d", OTHER, OTHER.replace("n + n + 1", "n + n").replace(" + 1", ""), NEW_TEST + STRICTER)
    with open(root / "set.jsonl", "w") as out:
        for at in range(count):
            repo, (base, patch, test_patch) = ("c/d", bad) if at < wrong else ("a/b", good)
            names = ["test_double (test_it.T)"] + (["test_value (test_it.T)"] if at < wrong else [])
            row = {"instance_id": f"{repo.replace('/', '__')}-{at}", "repo": repo, "base_commit": base,
                   "version": "1", "problem_statement": "double(2) gives 5", "hints_text": "", "patch": patch,
                   "test_patch": test_patch, "FAIL_TO_PASS": json.dumps(names),
                   "PASS_TO_PASS": ["test_there (test_it.T)"]}
            out.write(json.dumps(row) + "\n")
    with open(root / "recording.jsonl", "w") as out:
        out.writelines(json.dumps(line) + "\n" for line in recording())


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
