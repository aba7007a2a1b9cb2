"""Learns the weights of `locate` from the rows that the bench target writes, and prints how good they are.

    python benches/locate/learn.py ROWS HISTORY_ROWS [crates/index/src/locate/weights.rs]

There are three linear models. Each maximizes the likelihood (softmax) of the files or symbols that the change
edits, with a penalty on large weights; a feature that is evidence cannot have a negative weight. The first model
ranks files among all files. The second ranks symbols among all symbols, with the score of a symbol's file as
another feature. The third ranks symbols among the symbols of the right files. The score of a symbol is the mean
of two log-likelihoods: the one of the second model, and the sum of those of its file and of the third model.

`ROWS` is the directory of rows for the instances on which `locate` is measured, `HISTORY_ROWS` of those for the
instances that `history.py` creates from other repositories. There are more of the latter, and weights that are
learned from both generalize better. Figures are for the measured instances only, both on the training data and
held out: with weights learned from the history only, with each repository left out in turn, and with random
folds. The name of a repository is used only for these groups. Requires numpy.
"""
import json
import sys
from pathlib import Path

import numpy as np

PENALTY = {"files": 60.0, "symbols": 120.0, "inside": 60.0}
# Features that the history instances cannot teach, because their texts do not name the file.
UNTAUGHT = {"path", "link"}
# Weight of a history instance, relative to a measured one.
HISTORY = {"files": 0.3, "symbols": 0.6}
FOLDS = 10
# Number of candidates among which the right ones are distinguished: those with the best rough
# scores.
HARD = 80
# The score of a symbol's file counts as at most this much worse than that of the best file.
FLOOR = -6.0
# Features that may have a negative weight: the kind and position of a candidate, not the evidence
# in the text.
FREE = set(
    "size test init apart depth private class method dunder initialiser nested code usage".split()
) | {"module body", "first place"}
# Evidence that is rare but nearly certain: large weights are penalized relative to these values,
# not relative to zero.
PRIOR = {"path": 3.0, "module": 1.5, "dotted": 3.0, "inside": 1.0, "link": 2.0, "frame": 2.0}
RANKS = (1, 3, 5, 10, 20)


class Rows:
    """The candidates of one kind for all instances, the measured ones first."""

    def __init__(self, wheres, kind, instances, measured):
        self.kind = kind
        self.weights = np.where(np.arange(len(instances)) < measured, 1.0, HISTORY[kind])
        one = kind[:-1]
        self.names = next(i[f"{one}_features"] for i in instances if i[f"{one}_features"])
        flat = np.concatenate([np.fromfile(where / f"{kind}.f32", dtype="<f4") for where in wheres])
        self.x = flat.reshape(-1, len(self.names)).astype(float)
        self.paths = [i[kind] for i in instances]
        ends = np.cumsum([len(paths) for paths in self.paths])
        self.spans = [slice(end - len(paths), end) for end, paths in zip(ends, self.paths)]
        gold = [set(i[f"gold_{kind}"]) for i in instances]
        self.y = np.array([p in g for g, paths in zip(gold, self.paths) for p in paths])
        self.hard = np.concatenate([self.hardest(span) for span in self.spans])
        self.files = [np.array([path.split("::")[0] for path in paths]) for paths in self.paths]
        untaught = [at for at, name in enumerate(self.names) if name in UNTAUGHT]
        for span in self.spans[measured:]:
            self.x[span, untaught] = 0.0

    def hardest(self, span):
        first = self.x[span, self.names.index("first")]
        chosen = np.zeros(len(first), bool)
        chosen[np.argsort(-first, kind="stable")[:HARD]] = True
        return chosen | self.y[span]

    def inside(self):
        """Returns which candidates are in the right files."""
        pairs = zip(self.spans, self.files)
        return np.concatenate([np.isin(files, files[self.y[span]]) for span, files in pairs])


def learn(rows, x, chosen, among, penalty):
    """Returns the weights that maximize the likelihood of the right candidates of the chosen instances among the
    other candidates, by Newton's method."""
    chosen = [i for i in chosen if rows.y[rows.spans[i]].any()]
    spans, weights = [rows.spans[i] for i in chosen], rows.weights[chosen]
    hard = [np.flatnonzero(among[span]) + span.start for span in spans]
    at, y = np.concatenate(hard), rows.y[np.concatenate(hard)]
    lengths = np.array([len(h) for h in hard])
    heads = np.cumsum(lengths) - lengths
    scale = x[at].std(0) + 1e-6
    z = x[at] / scale
    bound = np.array([name not in FREE for name in rows.names] + [True] * (x.shape[1] - len(rows.names)))
    prior = np.array([PRIOR.get(name, 0.0) for name in rows.names] + [0.0] * (x.shape[1] - len(rows.names)))
    prior *= scale

    def likelihood(w):
        s = z @ w
        e = np.exp(s - np.repeat(np.maximum.reduceat(s, heads), lengths))
        p = e / np.repeat(np.add.reduceat(e, heads), lengths)
        right = np.maximum(np.add.reduceat(p * y, heads), 1e-300)
        loss = -(weights * np.log(right)).sum() + penalty * ((w - prior) ** 2).sum() / 2
        return p, p * y / np.repeat(right, lengths), loss

    each = np.repeat(weights, lengths)
    w = prior.copy()
    p, q, value = likelihood(w)
    for _ in range(25):
        gradient = z.T @ (each * (p - q)) + penalty * (w - prior)
        means = np.add.reduceat(z * p[:, None], heads, axis=0)
        curvature = (z * (each * p)[:, None]).T @ z - (means * weights[:, None]).T @ means
        curvature += penalty * np.eye(len(w))
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
    """Returns the features of symbols with one more column: the score of their file minus that of the best file."""
    scores = files.x @ of_files
    column = np.zeros((len(symbols.x), 1))
    for i, (span, own) in enumerate(zip(files.spans, symbols.spans)):
        if len(files.paths[i]):
            of = dict(zip(files.paths[i], scores[span] - scores[span].max()))
            column[own, 0] = [of[file] for file in symbols.files[i]]
    return np.hstack([symbols.x, np.maximum(column, FLOOR)]), column[:, 0]


def fit(files, symbols, chosen):
    """Returns the weights of the three models."""
    of_files = learn(files, files.x, chosen, files.hard, PENALTY["files"])
    both, _ = with_files(files, symbols, of_files)
    of_symbols = learn(symbols, both, chosen, symbols.hard, PENALTY["symbols"])
    return of_files, of_symbols, learn(symbols, symbols.x, chosen, symbols.inside(), PENALTY["inside"])


def scores(files, symbols, weights):
    """Returns the scores of all files and of all symbols."""
    of_files, of_symbols, inside = weights
    both, of_file = with_files(files, symbols, of_files)
    inside = symbols.x @ inside
    for span, own in zip(symbols.spans, symbols.files):
        _, at = np.unique(own, return_inverse=True)
        best = np.full(at.max(initial=-1) + 1, -np.inf)
        np.maximum.at(best, at, inside[span])
        less = inside[span] - best[at]
        inside[span] = less - np.log(np.bincount(at, np.exp(less)))[at]
    return files.x @ of_files, (both @ of_symbols + of_file + inside) / 2


def ranks(rows, scores, chosen):
    """Returns the rank of the best right candidate of each instance, counted from 1."""
    found = {}
    for i in chosen:
        s, y = scores[rows.spans[i]], rows.y[rows.spans[i]]
        found[i] = 1 + (s > s[y].max()).sum() if y.any() else np.inf
    return found


def recall(found):
    values = np.array(list(found.values()))
    return " / ".join(f"{100 * (values <= k).mean():.1f}" for k in RANKS)


def evaluate(files, symbols, groups, everyone):
    """Ranks each group with the weights that are learned from all other groups, and returns the recall."""
    file_ranks, symbol_ranks = {}, {}
    for group in groups:
        of_files, of_symbols = scores(files, symbols, fit(files, symbols, sorted(everyone - set(group))))
        file_ranks |= ranks(files, of_files, group)
        symbol_ranks |= ranks(symbols, of_symbols, group)
    return recall(file_ranks), recall(symbol_ranks)


def report(files, symbols, measured, repositories):
    """Prints how well `locate` works on the measured instances, which come first. Returns the weights learned
    from all instances."""
    everyone, first = set(range(len(files.spans))), list(range(measured))
    say = lambda how, found: print(f"{how:24} files {found[0]} | symbols {found[1]}", flush=True)
    for rows in (files, symbols):
        reach = np.mean([rows.y[span].any() for span in rows.spans[:measured]])
        print(f"{rows.kind}: {len(rows.names)} features, right ones among the candidates {100 * reach:.1f} %")
    print("recall at", " / ".join(map(str, RANKS)))
    print("BM25 of files", recall(ranks(files, files.x[:, files.names.index("words")], first)))
    weights = fit(files, symbols, sorted(everyone))
    found = (ranks(rows, of, first) for rows, of in zip((files, symbols), scores(files, symbols, weights)))
    say("in the sample", tuple(map(recall, found)))
    say("history alone", evaluate(files, symbols, [first], everyone))
    groups = [[n for n in first if repositories[n] == name] for name in sorted(set(repositories[:measured]))]
    say("repository left out", evaluate(files, symbols, groups, everyone))
    for seed in (1, 2, 3):
        order = np.random.default_rng(seed).permutation(measured)
        say(f"{FOLDS} folds, seed {seed}", evaluate(files, symbols, [order[f::FOLDS] for f in range(FOLDS)], everyone))
    return weights


def write(path, files, symbols, weights):
    of_files, of_symbols, inside = weights
    lines = [
        "//! Weights of the features of [`super::features`]. Generated by `benches/locate/learn.py`; do not",
        "//! edit by hand.",
        "",
    ]
    for title, what, names, own in (
        ("FILE", "a file", files.names, of_files),
        ("SYMBOL", "a symbol, compared with all symbols", symbols.names, of_symbols),
        ("INSIDE", "a symbol, compared with the other symbols of its file", symbols.names, inside),
    ):
        lines.append(f"/// Weight of each feature of {what}.")
        lines.append(f"pub(super) const {title}: [(&str, f32); {len(names)}] = [")
        lines += [f'    ("{name}", {weight:.4f}),' for name, weight in zip(names, own)]
        lines += ["];", ""]
    lines += [
        "/// Weight of a file's score in the score of its symbols, and the lowest file score that counts,",
        "/// relative to the best file.",
    ]
    lines.append(f"pub(super) const OF_FILE: (f32, f32) = ({of_symbols[-1]:.4f}, {FLOOR:.1f});")
    Path(path).write_text("\n".join(lines) + "\n")


def main():
    wheres = [Path(argument) for argument in sys.argv[1:3]]
    lists = [[json.loads(line) for line in open(where / "rows.jsonl")] for where in wheres]
    measured, instances = len(lists[0]), lists[0] + lists[1]
    files, symbols = (Rows(wheres, kind, instances, measured) for kind in ("files", "symbols"))
    weights = report(files, symbols, measured, [i["repo"] for i in instances])
    if len(sys.argv) > 3:
        write(sys.argv[3], files, symbols, weights)


if __name__ == "__main__":
    main()
