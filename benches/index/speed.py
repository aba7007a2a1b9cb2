#!/usr/bin/env python3
"""Measures how fast a tree is indexed, compared with aider's repository map of the same tree in the same run.

    speed.py --tree DIR [--larger DIR] [--copies N] [--starling BIN] [--aider PYTHON] [--rounds N]

DIR is not modified: it is copied into a temporary directory. Prints the seconds and the peak memory of a
cold and a warm `starling index` and of aider's first map, and their ratios. To show how the cost grows with
size, also prints the cost per MB of source for DIR, for --larger (another tree), and for N copies of DIR.
The best of several rounds counts, because the machine may have other work. --aider is the Python of an
environment in which aider-chat is installed.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MB = 1e6


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", required=True)
    parser.add_argument("--larger")
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--starling", default="target/release/starling")
    parser.add_argument("--aider", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


class TestDirectory:
    """A temporary directory with copies of trees and a separate cache."""

    def __init__(self, args, folder):
        self.starling = os.path.abspath(args.starling)
        self.rounds, self.folder = args.rounds, folder
        self.cache = os.path.join(folder, "cache")

    def copy(self, tree, name):
        into = os.path.join(self.folder, name)
        shutil.copytree(tree, into, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return into

    def index(self, root):
        environment = {**os.environ, "STARLING_CACHE_DIR": self.cache}
        command = [self.starling, "index", "--repo", root, "--json"]
        began = time.monotonic()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return {**json.loads(done.stdout), "wall": time.monotonic() - began}

    def cold(self, root):
        def once():
            shutil.rmtree(self.cache, ignore_errors=True)
            return self.index(root)
        return best(once, self.rounds)

    def warm(self, root):
        self.index(root)
        return best(lambda: self.index(root), self.rounds)


def best(once, rounds):
    return min((once() for _ in range(rounds)), key=lambda report: report["wall"])


def aider(python, root):
    """Creates one cold map with aider in a separate process. Returns its seconds and its peak memory."""
    script = os.path.join(HERE, "..", "map", "aider_map.py")
    request = json.dumps({"root": root, "text": "", "tokens": [1024]}) + "\n"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = subprocess.run([python, script], input=request, capture_output=True, text=True, check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    # `ru_maxrss` is the maximum of all child processes, so the peak is known only if it has
    # increased.
    return {"seconds": json.loads(done.stdout)["seconds"], "peak": peak * 1024 if peak > before else None}


def show(name, report):
    peak = report["peak_rss_bytes"]
    print(f"{name:<28} {report['wall']:8.3f} s  {1000 * report['wall'] / (report['bytes'] / MB):7.1f} ms/MB"
          f"  peak {peak / MB if peak else float('nan'):7.1f} MB  files {report['files']:>6}"
          f"  source {report['bytes'] / MB:6.1f} MB{'  from cache' if report['from_cache'] else ''}", flush=True)


def against_aider(directory, python, root, cold):
    first = aider(python, root)
    for _ in range(1, min(directory.rounds, 3)):
        again = aider(python, root)
        first["seconds"] = min(first["seconds"], again["seconds"])
    memory = f"  peak {first['peak'] / MB:7.1f} MB" if first["peak"] else ""
    print(f"{'aider, first map':<28} {first['seconds']:8.3f} s{memory}")
    print(f"aider / starling cold: {first['seconds'] / cold['wall']:.1f} times as long", end="")
    if first["peak"] and cold["peak_rss_bytes"]:
        print(f", {first['peak'] / cold['peak_rss_bytes']:.1f} times the memory", end="")
    print()


def growth(directory, args, base):
    trees = []
    if args.larger:
        trees.append(("larger tree, cold", directory.copy(args.larger, "larger")))
    if args.copies:
        for number in range(args.copies):
            directory.copy(args.tree, os.path.join("copies", f"copy{number}"))
        trees.append((f"{args.copies} copies, cold", os.path.join(directory.folder, "copies")))
    per_mb = base["wall"] / base["bytes"]
    for name, root in trees:
        report = directory.cold(root)
        show(name, report)
        print(f"  cost per MB, to the tree's own: {report['wall'] / report['bytes'] / per_mb:.2f}")


def main():
    args = options()
    with tempfile.TemporaryDirectory() as folder:
        directory = TestDirectory(args, folder)
        root = directory.copy(args.tree, "tree")
        cold = directory.cold(root)
        show("starling index, cold", cold)
        show("starling index, warm", directory.warm(root))
        if args.aider:
            against_aider(directory, args.aider, root, cold)
        growth(directory, args, cold)


main()
