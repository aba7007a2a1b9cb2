"""Spreads instances over a Ray cluster: each is a task, and each task the program itself with `--ids`.

Started by `starling swebench run --ray`, which says on one line of JSON what is wanted and reads a line for
each instance. It ends when its standard input does.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

import ray

SET_DEATH_SIGNAL = 1
COMPLAINT = 2000


def end_with_parent():
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)


def solve(instance, command, seconds):
    """One instance on one node, in a folder that nobody else has."""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [*command, "--ids", instance, "--out", out], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace", timeout=seconds, preexec_fn=end_with_parent,
        )
        folder = os.path.join(out, "instances", instance)
        try:
            with open(os.path.join(folder, "result.json"), encoding="utf-8") as file:
                record = json.load(file)
        except OSError:
            return {"id": instance, "error": done.stderr[-COMPLAINT:].strip() or f"status {done.returncode}"}
        try:
            with open(os.path.join(folder, "trajectory.jsonl"), encoding="utf-8", errors="replace") as file:
                story = file.read()
        except OSError:
            story = None
        return {"id": instance, "record": record, "story": story}


def watch_starter():
    sys.stdin.read()
    os._exit(1)


def main():
    wanted = json.loads(sys.stdin.readline())
    threading.Thread(target=watch_starter, daemon=True).start()
    ray.init(address=wanted["address"], log_to_driver=False, logging_level="ERROR")
    # A task whose node is lost is begun again elsewhere.
    task = ray.remote(solve).options(num_cpus=1, max_retries=wanted["retries"], scheduling_strategy="SPREAD")
    running = {task.remote(one, wanted["command"], wanted["seconds"]): one for one in wanted["ids"]}
    while running:
        for ready in ray.wait(list(running), num_returns=1)[0]:
            instance = running.pop(ready)
            try:
                said = ray.get(ready)
            except Exception as error:  # Whatever it is, the others go on.
                said = {"id": instance, "error": str(error)[-COMPLAINT:]}
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
