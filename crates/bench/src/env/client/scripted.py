"""A policy that knows one change by heart: an example of an episode from its beginning to its reward.

    python scripted.py SYMBOL SOURCE_FILE ARGUMENTS OF starling swebench env …
"""

import json
import sys

from starling_env import StarlingEnv


def policy(symbol, source):
    """Picks the symbol with its new text, and agrees with whatever it is asked besides."""

    def answer(observation):
        offered = {tool["function"]["name"] for tool in observation["tools"]}
        if "wake" in offered:
            pick = {"symbol": symbol, "why": "it is wrong", "source": source}
            return call("wake", {"symbols": [pick]})
        if "finish" in offered:
            return call("finish", {"summary": "done"})
        return {"role": "assistant", "content": "ACCEPT"}

    return answer


def call(name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}


def episode(env, answer, instance_id=None):
    observation, info = env.reset(instance_id)
    reward, done = 0.0, observation is None
    while not done:
        observation, reward, done, info = env.step(answer(observation))
    return reward, info


if __name__ == "__main__":
    with open(sys.argv[2]) as file:
        wanted = policy(sys.argv[1], file.read())
    with StarlingEnv(sys.argv[3:]) as env:
        for one in env.instances():
            reward, info = episode(env, wanted, one)
            print(json.dumps({"instance_id": one, "reward": reward, "grade": info["grade"], "why": info.get("why")}))
