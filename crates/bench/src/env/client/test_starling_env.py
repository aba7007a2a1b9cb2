"""The client against a program that plays the environment."""

import sys

import pytest
from starling_env import EnvError, StarlingEnv

PROGRAM = """#!{python}
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["op"] == "reset":
        said = {{"observation": {{"messages": [], "tools": []}}, "reward": 0.0, "done": False,
                "info": {{"instance_id": asked.get("instance_id", "first")}}}}
    elif asked["op"] == "instances":
        said = {{"instances": sys.argv[3:]}}
    elif asked["action"].get("content") == "sleep":
        time.sleep(600)
    elif asked["action"].get("content") == "die":
        break
    elif asked["action"].get("content") == "end":
        said = {{"observation": None, "reward": 1.0, "done": True, "info": {{"grade": "resolved"}}}}
    else:
        said = {{"error": "no action"}}
    print(json.dumps(said), flush=True)
"""


@pytest.fixture
def start(tmp_path):
    program = tmp_path / "program"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    begun = []

    def begin(seconds=30.0):
        begun.append(StarlingEnv(["a", "b"], program=str(program), seconds=seconds))
        return begun[-1]

    yield begin
    for env in begun:
        env.close()


def test_an_episode_goes_from_reset_to_its_reward(start):
    env = start()
    assert env.instances() == ["a", "b"]
    observation, info = env.reset("b")
    assert observation == {"messages": [], "tools": []} and info == {"instance_id": "b"}
    assert env.reset()[1] == {"instance_id": "first"}
    assert env.step({"content": "end"}) == (None, 1.0, True, {"grade": "resolved"})


def test_what_makes_no_sense_is_an_error_and_the_talk_goes_on(start):
    env = start()
    with pytest.raises(EnvError, match="no action"):
        env.step({})
    assert env.reset()[1] == {"instance_id": "first"}


def test_no_answer_is_waited_for_without_end(start):
    env = start(seconds=0.5)
    with pytest.raises(EnvError, match="no answer within 0.5 s"):
        env.step({"content": "sleep"})
    env._process.kill()


def test_a_program_that_is_gone_is_told(start):
    env = start()
    for _ in range(2):
        with pytest.raises(EnvError, match="ended|gone"):
            env.step({"content": "die"})
