"""Learns the weights of `locate` from the rows that the bench target writes, and says how well they do.

    python benches/locate/learn.py ROWS [src/index/locate/weights.rs]

Two linear models, one for files and one for symbols, where the score of a symbol's file is one more
feature of the symbol. Each makes what the change touched likely among all candidates (softmax), with
a penalty on large weights; a feature that is evidence may not count against a candidate. Figures are
given in the sample and cross-validated: each repository left out in turn, and by random folds. The
repository's name is used for these groups alone. Needs numpy, nothing else.
"""
import json
import sys
from pathlib import Path

import numpy as np

PENALTY = {"files": 60.0, "symbols": 100.0}
FOLDS = 10
# Candidates to tell the right ones from: those that look best at first sight.
HARD = 80
# A symbol's file is at most this much worse than the best file.
FLOOR = -6.0
# What may count against a candidate: its kind and place, not what the text says of it.
FREE = set(
    "size test init apart depth private class method dunder initialiser nested code".split()
) | {"module body"}
# What is certain where it is there, but rare: large weights are held against these from here on, not
# from zero.
PRIOR = {"path": 3.0, "module": 1.5, "dotted": 3.0, "inside": 1.0, "link": 2.0, "frame": 2.0}
RANKS = (1, 3, 5, 10, 20)


class Rows:
    """The candidates of one kind for all instances."""

    def __init__(self, where, kind, instances):
        self.kind = kind
        one = kind[:-1]
        self.names = next(i[f"{one}_features"] for i in instances if i[f"{one}_features"])
        flat = np.fromfile(where / f"{kind}.f32", dtype="<f4")
        self.x = flat.reshape(-1, len(self.names)).astype(float)
        self.paths = [i[kind] for i in instances]
        ends = np.cumsum([len(paths) for paths in self.paths])
        self.spans = [slice(end - len(paths), end) for end, paths in zip(ends, self.paths)]
        gold = [set(i[f"gold_{kind}"]) for i in instances]
        self.y = np.array([p in g for g, paths in zip(gold, self.paths) for p in paths])
        self.hard = np.concatenate([self.hardest(span) for span in self.spans])

    def hardest(self, span):
        first = self.x[span, self.names.index("first")]
        chosen = np.zeros(len(first), bool)
        chosen[np.argsort(-first, kind="stable")[:HARD]] = True
        return chosen | self.y[span]


def learn(rows, x, chosen):
    """Weights under which the touched candidates of the chosen instances are likely: Newton's method."""
    spans = [rows.spans[i] for i in chosen if rows.y[rows.spans[i]].any()]
    hard = [np.flatnonzero(rows.hard[span]) + span.start for span in spans]
    at, y = np.concatenate(hard), rows.y[np.concatenate(hard)]
    lengths = np.array([len(h) for h in hard])
    heads = np.cumsum(lengths) - lengths
    scale = x[at].std(0) + 1e-6
    z = x[at] / scale
    bound = np.array([name not in FREE for name in rows.names] + [True] * (x.shape[1] - len(rows.names)))
    penalty = PENALTY[rows.kind]
    prior = np.array([PRIOR.get(name, 0.0) for name in rows.names] + [0.0] * (x.shape[1] - len(rows.names)))
    prior *= scale

    def likelihood(w):
        s = z @ w
        e = np.exp(s - np.repeat(np.maximum.reduceat(s, heads), lengths))
        p = e / np.repeat(np.add.reduceat(e, heads), lengths)
        right = np.maximum(np.add.reduceat(p * y, heads), 1e-300)
        return p, p * y / np.repeat(right, lengths), -np.log(right).sum() + penalty * ((w - prior) ** 2).sum() / 2

    w = prior.copy()
    p, q, value = likelihood(w)
    for _ in range(25):
        gradient = z.T @ (p - q) + penalty * (w - prior)
        means = np.add.reduceat(z * p[:, None], heads, axis=0)
        curvature = (z * p[:, None]).T @ z - means.T @ means + penalty * np.eye(len(w))
        free = np.flatnonzero(~(bound & (w <= 0) & (gradient > 0)))
        step = np.zeros_like(w)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        size, before = 1.0, value
        while size > 1e-3:
            tried = w - size * step
            tried[bound] = np.maximum(tried[bound], 0)
            now = likelihood(tried)
            if now[2] < value:
                w, (p, q, value) = tried, now
                break
            size /= 2
        if before - value < 1e-4:
            break
    return w / scale


def with_files(files, symbols, of_files):
    """The features of symbols, with the score of their file less that of the best file."""
    scores = files.x @ of_files
    column = np.zeros((len(symbols.x), 1))
    for i, (span, own) in enumerate(zip(files.spans, symbols.spans)):
        if len(files.paths[i]):
            of = dict(zip(files.paths[i], scores[span] - scores[span].max()))
            column[own, 0] = [max(of[path.split("::")[0]], FLOOR) for path in symbols.paths[i]]
    return np.hstack([symbols.x, column])


def fit(files, symbols, chosen):
    of_files = learn(files, files.x, chosen)
    both = with_files(files, symbols, of_files)
    return of_files, learn(symbols, both, chosen), both


def ranks(rows, scores, chosen):
    """The rank of the best touched candidate of each instance, from 1."""
    found = {}
    for i in chosen:
        s, y = scores[rows.spans[i]], rows.y[rows.spans[i]]
        found[i] = 1 + (s > s[y].max()).sum() if y.any() else np.inf
    return found


def recall(found):
    values = np.array(list(found.values()))
    return " / ".join(f"{100 * (values <= k).mean():.1f}" for k in RANKS)


def evaluate(files, symbols, groups):
    """Each group is ranked by what the others teach."""
    everyone = set(range(len(files.spans)))
    file_ranks, symbol_ranks = {}, {}
    for group in groups:
        of_files, of_symbols, both = fit(files, symbols, sorted(everyone - set(group)))
        file_ranks |= ranks(files, files.x @ of_files, group)
        symbol_ranks |= ranks(symbols, both @ of_symbols, group)
    return file_ranks, symbol_ranks


def report(files, symbols, instances):
    everyone = list(range(len(instances)))
    for rows in (files, symbols):
        reach = np.mean([rows.y[span].any() for span in rows.spans])
        print(f"{rows.kind}: {len(rows.names)} features, right ones among the candidates {100 * reach:.1f} %")
    print("recall at", " / ".join(map(str, RANKS)))
    plain = files.x[:, files.names.index("words")]
    print("BM25 of files", recall(ranks(files, plain, everyone)))
    of_files, of_symbols, both = fit(files, symbols, everyone)
    print("files, in the sample", recall(ranks(files, files.x @ of_files, everyone)))
    print("symbols, in the sample", recall(ranks(symbols, both @ of_symbols, everyone)))
    repos = sorted({i["repo"] for i in instances})
    by_repo = [[n for n in everyone if instances[n]["repo"] == repo] for repo in repos]
    for seed in (1, 2, 3):
        order = np.random.default_rng(seed).permutation(len(everyone))
        file_ranks, symbol_ranks = evaluate(files, symbols, [order[f::FOLDS] for f in range(FOLDS)])
        print(f"files, {FOLDS} folds", recall(file_ranks), f"| symbols", recall(symbol_ranks))
    file_ranks, symbol_ranks = evaluate(files, symbols, by_repo)
    print("files, repository left out", recall(file_ranks), "| symbols", recall(symbol_ranks))
    return of_files, of_symbols


def write(path, files, of_files, symbols, of_symbols):
    lines = ["//! Written by `benches/locate/learn.py`.", ""]
    for title, what, names, weights in (
        ("FILE", "a file", files.names, of_files),
        ("SYMBOL", "a symbol", symbols.names, of_symbols),
    ):
        lines.append(f"/// What each feature of {what} is worth.")
        lines.append(f"pub(super) const {title}: [(&str, f32); {len(names)}] = [")
        lines += [f'    ("{name}", {weight:.4f}),' for name, weight in zip(names, weights)]
        lines += ["];", ""]
    lines.append("/// What the score of its file is worth to a symbol, and how far below the best it counts.")
    lines.append(f"pub(super) const OF_FILE: (f32, f32) = ({of_symbols[-1]:.4f}, {FLOOR:.1f});")
    Path(path).write_text("\n".join(lines) + "\n")


def main():
    where = Path(sys.argv[1])
    instances = [json.loads(line) for line in open(where / "rows.jsonl")]
    files, symbols = (Rows(where, kind, instances) for kind in ("files", "symbols"))
    of_files, of_symbols = report(files, symbols, instances)
    if len(sys.argv) > 2:
        write(sys.argv[2], files, of_files, symbols, of_symbols)


if __name__ == "__main__":
    main()
