"""Creates aider's repository map without chat files, for compare.py. Reads and writes JSON lines.

In: {"root": DIR, "text": TASK or "", "tokens": [N, ...]}
Out: {"maps": {"N": TEXT}, "seconds": S, "files": N}, where seconds is the time for the first map with its tags.

Requires an environment with aider-chat. Files and identifiers that the text names are passed on as aider's
chat does. Nothing is written below root: tags are kept in memory. With --share they are shared between
requests by file content, so that trees with mostly the same files are fast; without it, every request starts
without tags.
"""

import hashlib
import json
import os
import subprocess
import sys
import time

os.environ["TQDM_DISABLE"] = "1"

from aider.coders.base_coder import Coder  # noqa: E402
from aider.models import Model  # noqa: E402
from aider.repomap import RepoMap  # noqa: E402


class Quiet:
    def read_text(self, path, silent=False):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeError):
            return None

    def tool_output(self, *_):
        pass

    tool_error = tool_warning = tool_output


class Map(RepoMap):
    shared = None

    def load_tags_cache(self):
        self.TAGS_CACHE = {}

    def get_tags_raw(self, fname, rel_fname):
        if Map.shared is None:
            return list(super().get_tags_raw(fname, rel_fname))
        with open(fname, "rb") as file:
            key = (rel_fname, hashlib.sha1(file.read()).digest())
        if key not in Map.shared:
            Map.shared[key] = [(tag.name, tag.kind, tag.line) for tag in super().get_tags_raw(fname, rel_fname)]
        from aider.repomap import Tag
        return [Tag(rel_fname, fname, line, name, kind) for name, kind, line in Map.shared[key]]

    def get_ranked_tags(self, *args, **kwargs):
        if getattr(self, "ranked", None) is None:
            self.ranked = super().get_ranked_tags(*args, **kwargs)
        return self.ranked


class Mentions(Coder):
    """The part of aider's chat that finds files and identifiers in a message."""

    def __init__(self, root, files):
        self.root, self.files = root, files
        self.abs_fnames, self.abs_read_only_fnames = set(), set()

    def get_all_relative_files(self):
        return self.files

    def get_inchat_relative_files(self):
        return []

    def get_addable_relative_files(self):
        return set(self.files)


def tracked(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True)
    if listed.returncode == 0 and listed.stdout:
        return [name for name in listed.stdout.decode().split("\0") if name]
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return found


def answer(request, model):
    root, text = os.path.abspath(request["root"]), request["text"]
    files = [name for name in tracked(root) if os.path.isfile(os.path.join(root, name))]
    mentions = Mentions(root, files)
    began = time.monotonic()
    idents = mentions.get_ident_mentions(text)
    names = mentions.get_file_mentions(text) | mentions.get_ident_filename_matches(idents)
    repo = Map(root=root, main_model=model, io=Quiet(), map_mul_no_files=1, max_context_window=None)
    every = [os.path.join(root, name) for name in files]
    maps, seconds = {}, None
    for tokens in request["tokens"]:
        text = repo.get_ranked_tags_map(set(), every, tokens, names, idents, force_refresh=True)
        seconds = seconds or time.monotonic() - began
        maps[str(tokens)] = text or ""
    return {"maps": maps, "seconds": seconds, "files": len(files)}


def main():
    if "--share" in sys.argv[1:]:
        Map.shared = {}
    out, sys.stdout = sys.stdout, sys.stderr
    model = Model("gpt-4o")
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), model)), file=out, flush=True)


main()
