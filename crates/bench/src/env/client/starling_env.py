"""A client of `starling swebench env`: instances of SWE-bench as environments for a trainer.

It needs nothing but Python's own library:

    with StarlingEnv(["--dataset", "set.jsonl", "--repos", "repositories", "--environments", "e.jsonl"]) as env:
        observation, info = env.reset("owner__name-1")
        done = False
        while not done:
            action = policy(observation["messages"], observation["tools"])
            observation, reward, done, info = env.step(action)

An observation is what a model of the swarm would be asked: `conversation`, `messages` and `tools` as OpenAI
writes them, and `max_output`; None when the episode is over. An action is a message of the assistant: a dict
with `content`, `tool_calls`, or both. The reward is 1.0 at the end of an episode whose hidden tests hold.
"""

import json
import queue
import subprocess
import threading


class EnvError(Exception):
    """What was asked for makes no sense, or the program is gone."""


class StarlingEnv:
    def __init__(self, arguments, program="starling", seconds=3600.0):
        """Starts the program. No answer is waited for longer than `seconds`."""
        self._seconds = seconds
        self._process = subprocess.Popen(
            [program, "swebench", "env", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _ask(self, request):
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise EnvError(f"the program is gone: {error}") from error
        try:
            line = self._lines.get(timeout=self._seconds)
        except queue.Empty:
            raise EnvError(f"no answer within {self._seconds} s") from None
        if line is None:
            self._lines.put(None)
            raise EnvError("the program has ended")
        said = json.loads(line)
        if "error" in said:
            raise EnvError(said["error"])
        return said

    def instances(self):
        return self._ask({"op": "instances"})["instances"]

    def reset(self, instance_id=None):
        """Begins an episode, of the next instance where none is named: observation and info."""
        request = {"op": "reset"}
        if instance_id is not None:
            request["instance_id"] = instance_id
        said = self._ask(request)
        return said["observation"], said["info"]

    def step(self, action):
        """Answers the observation that came last: observation, reward, done, info."""
        said = self._ask({"op": "step", "action": action})
        return said["observation"], said["reward"], said["done"], said["info"]

    def close(self):
        """Ends what is under way, and the program."""
        if self._process.poll() is None:
            try:
                self._process.stdin.close()
                self._process.wait(timeout=10)
            except (OSError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
