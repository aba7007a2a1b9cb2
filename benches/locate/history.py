"""Creates training instances for `locate` from the histories of repositories: the message of a commit with a
small fix is the task, and the tree before the commit is searched.

    python benches/locate/history.py GIT_DIRECTORIES... OUT

`GIT_DIRECTORIES` are clones, bare or not, with any paths, for example `OWNER+NAME/repo`. The script writes
`instances.jsonl` and a tree for each instance to `OUT`, in the format that the bench target reads. A commit is
used if it changes a few lines of one Python file outside of tests, and its message describes a defect in
enough words without naming the file. Among these commits, the hashes alone decide which are used.
Repositories on which `locate` is measured are rejected.

The weights were learnt on mypy, sqlalchemy, celery, scrapy, networkx, keystone, pip, ipython, dask,
twisted, scipy and django-rest-framework: 526 instances, 3.6 GB.
"""
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

EACH = 46
# Later commits are left out, so that every run takes the same commits.
UNTIL = "2026-08-31"
FEWEST_WORDS, MOST_WORDS = 45, 600
MOST_LINES, MOST_HUNKS = 40, 4
# Maximum size of the Python files in a tree, in bytes. Larger trees take too much disk space.
LARGEST_TREE = 25_000_000
MEASURED = set(
    "django sympy matplotlib scikit-learn pytest sphinx astropy requests pylint xarray seaborn flask".split()
)
WRONG = re.compile(
    r"\b(fix(es|ed)?|bugs?|issue|crash(es|ed)?|errors?|exception|traceback|wrong(ly)?|incorrect(ly)?|fail(s|ed|ing|ure)?|broken|regression)\b",
    re.I,
)
ASIDE = re.compile(
    r"(^|/)(tests?|testing|docs?|examples?|benchmarks?|conftest|setup|_?version)(/|\.py$)|(^|/)test_|_tests?\.py$"
)
TRAILER = re.compile(
    r"^\s*(change-id|closes(-bug)?|fixes|fixed|resolves|partial-bug|related-bug|signed-off-by|co-authored-by|reviewed-by|"
    r"references|see also|cherry.picked|\(cherry picked|git-svn-id|implements|blueprint|story|task|depends-on|"
    r"pull-request|backport|author|ticket)\b[ :#].{0,120}$",
    re.I,
)


def git(directory, *arguments):
    command = ["git", "--git-dir", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def commits(directory):
    """Returns the hash, the message and the changed files of each commit with one parent."""
    form = "--format=%x01%H%x02%B%x03"
    log = git(directory, "log", "--no-merges", f"--until={UNTIL}", form, "--name-status", "--no-renames")
    for entry in log.decode(errors="replace").split("\x01")[1:]:
        head, _, files = entry.partition("\x03")
        commit, message = head.split("\x02", 1)
        changed = [line.split("\t", 1) for line in files.splitlines() if "\t" in line]
        yield commit, message, changed


def cleaned(message):
    lines = [line for line in message.strip().splitlines() if not TRAILER.match(line)]
    return "\n".join(lines).strip() + "\n"


def text_of(message, path):
    """Returns the commit message as the text of a task, or None if it is not suitable."""
    text = cleaned(message)
    names_file = Path(path).name in text or "Revert" in text[:20]
    told = FEWEST_WORDS <= len(text.split()) <= MOST_WORDS and WRONG.search(text)
    return text if told and not names_file else None


def code_file(changed):
    code = [(how, path) for how, path in changed if path.endswith(".py") and not ASIDE.search(path)]
    return code[0][1] if len(code) == 1 and code[0][0] == "M" else None


def small_patch(directory, commit, path):
    patch = git(directory, "diff", f"{commit}^", commit, "--", path).decode(errors="replace")
    hunks = patch.count("\n@@ -")
    lines = sum(1 for line in patch.splitlines() if re.match(r"[+-](?![+-]{2} )", line))
    return patch if 0 < hunks <= MOST_HUNKS and lines <= MOST_LINES and "\r" not in patch else None


def write_tree(directory, commit, out):
    out.mkdir(parents=True)
    archive = git(directory, "archive", f"{commit}^", ":(glob)**/*.py")
    subprocess.run(["tar", "-x", "-C", str(out)], input=archive, check=True)


def instances(directory, name, out):
    found = []
    for commit, message, changed in commits(directory):
        path = code_file(changed)
        text = path and text_of(message, path)
        if text:
            order = hashlib.sha256(commit.encode()).hexdigest()
            found.append((order, commit, path, text))
    taken = 0
    for _, commit, path, text in sorted(found):
        patch = taken < EACH and small_patch(directory, commit, path)
        if not patch:
            continue
        size = git(directory, "ls-tree", "-r", "-l", f"{commit}^").decode(errors="replace").splitlines()
        size = sum(int(line.split()[3]) for line in size if line.endswith(".py") and line.split()[3].isdigit())
        if size > LARGEST_TREE:
            continue
        id = f"{name}-{commit[:10]}"
        write_tree(directory, commit, out / id)
        taken += 1
        yield {"instance_id": id, "repo": name, "problem_statement": text, "patch": patch}
    print(name, f"{taken} of {len(found)}", file=sys.stderr)


def main():
    *directories, out = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "instances.jsonl", "w") as lines:
        for directory in directories:
            name = directory.parent.name if directory.name in ("repo", ".git") else directory.name
            if MEASURED & set(re.split(r"[+/]", name)):
                sys.exit(f"{name} is a repository on which `locate` is measured: remove it from the arguments")
            for instance in instances(directory, name, out):
                lines.write(json.dumps(instance) + "\n")


if __name__ == "__main__":
    main()
