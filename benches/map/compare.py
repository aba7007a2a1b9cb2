#!/usr/bin/env python3
"""Measures how often the repository map for a task lists the file that the task's change edits.

    compare.py --instances FILE.jsonl --checkouts DIR [--starling BIN] [--aider PYTHON] [--limit N]

FILE contains instances of SWE-bench, one per line (instance_id, problem_statement, patch). DIR contains a
checkout of each at its base commit, DIR/<instance_id>. The map is created from the problem statement and the
checkout only; the patch determines which files are right. With --aider, the Python of an environment in which
aider-chat is installed, aider's map without chat files is measured on the same instances in the same run.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGETS = (1024, 4096, 8192)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", required=True)
    parser.add_argument("--checkouts", required=True)
    parser.add_argument("--starling", default="target/release/starling")
    parser.add_argument("--aider", metavar="PYTHON")
    parser.add_argument("--limit", type=int, help="number of instances to sample, with a fixed seed (default: all)")
    parser.add_argument("--out", help="file for the result of each instance, as JSON lines")
    return parser.parse_args()


def instances(args):
    with open(args.instances, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = [row for row in rows if os.path.isdir(os.path.join(args.checkouts, row["instance_id"]))]
    if args.limit:
        rows = random.Random(0).sample(rows, min(args.limit, len(rows)))
    return sorted(rows, key=lambda row: row["instance_id"])


def gold(row):
    return set(re.findall(r"^\+\+\+ b/(.+)$", row["patch"], re.M))


def listed(text):
    """Returns the files that a map lists: the lines that are a path, with or without a colon. Code is indented or
    follows a mark."""
    lines = (line for line in text.splitlines() if line and line[0] not in " \t│⋮")
    return {line.rstrip().removesuffix(":") for line in lines}


def ours(args, root, row):
    maps, seconds, tokens = {}, None, {}
    for budget in BUDGETS:
        command = [args.starling, "map", "--repo", root, "--tokens", str(budget), "--file", "-", "--json"]
        began = time.monotonic()
        done = subprocess.run(command, input=row["problem_statement"], capture_output=True, text=True, check=True)
        seconds = seconds or time.monotonic() - began
        answer = json.loads(done.stdout)
        maps[budget], tokens[budget] = answer["map"], answer["tokens"]
        assert answer["tokens"] <= budget, row["instance_id"]
    return {"maps": maps, "seconds": seconds, "tokens": tokens}


class Aider:
    def __init__(self, python):
        command = [python, os.path.join(HERE, "aider_map.py"), "--share"]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)

    def ask(self, root, row):
        request = {"root": root, "text": row["problem_statement"], "tokens": BUDGETS}
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()
        answer = json.loads(self.child.stdout.readline())
        return {"maps": {int(n): text for n, text in answer["maps"].items()}, "seconds": answer["seconds"]}


def table(name, results):
    count = len(results)
    print(f"{name}, {count} instances")
    for budget in BUDGETS:
        hits = sum(result["hit"][budget] for result in results)
        files = statistics.median(result["files"][budget] for result in results)
        lines = statistics.median(result["lines"][budget] for result in results)
        print(f"  {budget:>5} tokens: gold file listed {100 * hits / count:5.1f} %"
              f"   files {files:>5.0f}   lines {lines:>5.0f}   (medians)")
    seconds = [result["seconds"] for result in results]
    print(f"  first map of a tree: median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s")


def main():
    args = options()
    peers = {"starling": lambda root, row: ours(args, root, row)}
    if args.aider:
        peers["aider"] = Aider(args.aider).ask
    results = {name: [] for name in peers}
    out = open(args.out, "w", encoding="utf-8") if args.out else None
    for row in instances(args):
        root = os.path.join(args.checkouts, row["instance_id"])
        for name, ask in peers.items():
            answer = ask(root, row)
            found = {budget: listed(text) for budget, text in answer["maps"].items()}
            result = {
                "seconds": answer["seconds"],
                "hit": {budget: bool(gold(row) & files) for budget, files in found.items()},
                "files": {budget: len(files) for budget, files in found.items()},
                "lines": {budget: len(answer["maps"][budget].splitlines()) for budget in found},
            }
            results[name].append(result)
            if out:
                print(json.dumps({"instance_id": row["instance_id"], "peer": name, **result}), file=out, flush=True)
    for name, found in results.items():
        table(name, found)
    if args.aider:
        pairs = zip(results["aider"], results["starling"])
        ratios = [theirs["seconds"] / own["seconds"] for theirs, own in pairs]
        print(f"aider's seconds / ours (aider keeps the tags of files that it has seen): median {statistics.median(ratios):.1f}")


main()
