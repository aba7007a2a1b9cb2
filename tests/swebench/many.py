#!/usr/bin/env python3
"""Makes the folder of a run over many instances, to look at its pages: `many.py OUT COUNT STORY…`. Stories are
trajectories of real runs, given in turn; names, seconds and failures are made up, the same every time."""

import json
import random
import sys
from pathlib import Path

REPOS = ["astropy__astropy", "django__django", "matplotlib__matplotlib", "mwaskom__seaborn", "pallets__flask",
         "psf__requests", "pydata__xarray", "pylint-dev__pylint", "pytest-dev__pytest",
         "scikit-learn__scikit-learn", "sphinx-doc__sphinx", "sympy__sympy"]
WHY = ["the run did not finish within 1830 s, and was stopped",
       "the run ended without a result (exit status: 1): openai:model: the server answered 503: overloaded",
       "git read-tree 4a72da71001f: fatal: not a tree object"]


def finished(story):
    """The last event of a whole story."""
    last = json.loads(story.rstrip().rsplit("\n", 1)[-1])
    event = last.get("event", {})
    return event if event.get("event") == "run_finished" else None


def main(out, count, files):
    chance = random.Random(1)
    stories = [(text, end) for text in (Path(file).read_text() for file in files) if (end := finished(text))]
    out = Path(out)
    for at in range(count):
        name = f"{chance.choice(REPOS)}-{1000 + at * 37}"
        folder = out / "instances" / name
        folder.mkdir(parents=True)
        record = {"instance_id": name, "seconds": round(chance.uniform(20, 1400), 1)}
        if chance.random() < 0.06:
            record.update(outcome="failed", why=chance.choice(WHY), dollars=round(chance.uniform(0, 0.5), 4))
        else:
            story, end = stories[at % len(stories)]
            (folder / "trajectory.jsonl").write_text(story)
            record.update(outcome="finished", run=f"r{at}", stop_reason=end["stop_reason"], applied=end["applied"],
                          patch=end["diff"], spent=end["spent"], summary=end["summary"])
            record["spent"]["dollars"] = round(chance.uniform(0.01, 0.9), 4)
        (folder / "result.json").write_text(json.dumps(record))
    settings = {"dataset": "lite.jsonl", "driver": "swarm", "model": "openai:model"}
    (out / "run.json").write_text(json.dumps(settings))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
