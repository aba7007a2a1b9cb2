#!/usr/bin/env python3
"""Two Ray nodes in a namespace of their own, and instances spread over them by `starling swebench run --ray`.

    unshare -npf --mount-proc --kill-child python3 cluster.py STARLING RAY_BIN WORK [SECONDS]

First one node solves 48 instances with a model that thinks for SECONDS (5) before each answer, then two nodes do,
then two nodes solve 24 of which one is killed in the middle. Every instance has to be there exactly once each time.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import planted

COUNT = 48
WITH_LOSS = 24
SLOTS = 4


def start_node(ray, head, at):
    common = ["--num-cpus", str(SLOTS), "--object-store-memory", "100000000", "--disable-usage-stats", "--block"]
    where = ["--head", "--port=6390", "--include-dashboard=false"] if head else ["--address=127.0.0.1:6390"]
    return subprocess.Popen([f"{ray}/ray", "start", *where, f"--node-ip-address={at}", *common],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def nodes(ray):
    asks = "import ray; ray.init('127.0.0.1:6390', log_to_driver=False, logging_level='ERROR'); print(sum(n['Alive'] for n in ray.nodes()))"
    done = subprocess.run([f"{ray}/python", "-c", asks], capture_output=True, text=True, timeout=60)
    return int(done.stdout or 0)


def wait_for(ray, count):
    until = time.monotonic() + 120
    while nodes(ray) != count:
        assert time.monotonic() < until, f"no {count} nodes"


def run(starling, ray, work, out, count, meanwhile=None):
    expected = [f"a__b-{at}" for at in range(count)]
    command = [starling, "swebench", "run", "--dataset", work / "set.jsonl", "--ids", *expected, "--repos", work / "repos", "--out", out,
               "--model", f"socket:{work}/model", "--ray", "127.0.0.1:6390", "--ray-python", f"{ray}/python",
               "--budget-seconds", "300", "--json"]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if meanwhile:
        while len(list(out.glob("instances/*/result.json"))) < count // 4:
            time.sleep(0.05)
        meanwhile()
    report = json.loads(process.communicate(timeout=900)[0])
    took = time.monotonic() - began
    ids = [json.loads(line)["instance_id"] for line in (out / "predictions.jsonl").read_text().splitlines()]
    assert sorted(ids) == sorted(expected), ids
    assert report["settled"] == count, report
    for one in ids:
        last = (out / "instances" / one / "trajectory.jsonl").read_text().splitlines()[-1]
        assert json.loads(last)["event"]["event"] == "run_finished", one
    return took


def main(starling, ray, work, thinks="5"):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    work = Path(work)
    planted.main(work, COUNT)
    os.environ.update(STARLING_CACHE_DIR=str(work / "cache"), XDG_CONFIG_HOME=str(work / "config"))
    model = subprocess.Popen([sys.executable, "slow_model.py", work / "model", thinks], stdout=subprocess.PIPE)
    model.stdout.readline()
    start_node(ray, True, "127.0.0.1")
    wait_for(ray, 1)
    one = run(starling, ray, work, work / "one", COUNT)
    print(f"one node of {SLOTS}: {one:.1f} s", flush=True)
    second = start_node(ray, False, "127.0.0.2")
    wait_for(ray, 2)
    two = run(starling, ray, work, work / "two", COUNT)
    print(f"two nodes: {two:.1f} s, {one / two:.2f} times the throughput", flush=True)
    lost = run(starling, ray, work, work / "lost", WITH_LOSS, lambda: os.killpg(second.pid, signal.SIGKILL))
    print(f"two nodes, one killed after {WITH_LOSS // 4}: all {WITH_LOSS} done once, {lost:.1f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
