"""Levels and power of tests between two machines over the splits of one data set, as a CSV table.

    python benchmarks/tests_over_splits.py --out benchmarks/results/tests_over_splits.csv
        [--pools 1.0]

Each pool of rows has two sets of features that are exchangeable given the classes. One learner on
either set gives two machines with the same expected accuracy, so that each significant difference
is an error; the nominal level is 5 %. For the power, the same differences are shifted by 0.5, 1, 2
and 4 points in either direction. A row of the table is a protocol, a generator and a learner. The
columns are the percentages of pools with a significant difference: `t` by the paired t-test over
splits, `nb` by the corrected resampled t-test, `rule` by `mmbench.results.differences`, without a
suffix for equal machines, and with the shift as a suffix. Random numbers have fixed seeds. The
option `--pools` multiplies the numbers of pools. docs/tests_over_splits.md shows the file.
"""

import argparse
import csv
import zlib
from pathlib import Path

import numpy as np
from scipy.special import stdtrit
from sklearn.tree import DecisionTreeClassifier

from mmbench.results.differences import difference

#: Number of features of each machine.
D = 10
SHIFTS = (0.0, 0.5, 1.0, 2.0, 4.0)
#: Protocol -> rule, rows, training rows or folds, splits or rounds, and pools per cell.
PROTOCOLS = {
    "20 × 400/4900": ("holdout", 5300, 400, 20, 20),
    "100 × 400/4900": ("holdout", 5300, 400, 100, 6),
    "20 × 170/100": ("holdout", 270, 170, 20, 60),
    "100 × 170/100": ("holdout", 270, 170, 100, 80),
    "20 × 1300/1010": ("holdout", 2310, 1300, 20, 16),
    "20 × 700/300": ("holdout", 1000, 700, 20, 24),
    "50 × 90/10 of 300": ("holdout", 300, 270, 50, 24),
    "10 folds × 10 of 300": ("kfold", 300, 10, 10, 16),
    "10 folds × 5 of 700": ("kfold", 700, 10, 5, 16),
    "10 folds × 1 of 300": ("kfold", 300, 10, 1, 80),
    "5 folds × 1 of 400": ("kfold", 400, 5, 1, 80),
    "official, 1500/2007": ("official", 3507, 1500, 1, 120),
}
#: Learners that take several times as long have fewer pools.
SLOW = {"quadratic": 3, "tree": 4, "3-NN": 6}
NAMES = [f"{test}{f' {s:g}' if s else ''}" for test in ("t", "nb", "rule") for s in SHIFTS]


def normal(random, y, means, deviations):
    """Return rows whose class c is normal with the given mean and standard deviation."""
    noise = random.normal(size=(len(y), D))
    return np.take(deviations, y, axis=0)[:, None] * noise + np.take(means, y)[:, None]


def waves(random, y):
    """Return rows that mix two of three triangular waves, with noise."""
    at = np.linspace(1, 21, D)
    first, second, third = (np.maximum(6 - abs(at - peak), 0) for peak in (7, 11, 15))
    share = random.random((len(y), 1))
    rows = share * first + (1 - share) * np.where(y[:, None] > 0, second, third)
    return rows + random.normal(size=rows.shape)


def pool(generator, n, random):
    """Return two exchangeable sets of features, and labels 0 and 1."""
    y = (random.random(n) < (0.12 if generator == "rare" else 0.5)).astype(int)
    make = {
        "twonorm": lambda: normal(random, y, (0.4, -0.4), (1.0, 1.0)),
        "ringnorm": lambda: normal(random, y, (0.0, 0.6), (2.0, 1.0)),
        "waveform": lambda: waves(random, y),
        "flipped": lambda: normal(random, y, (0.5, -0.5), (1.0, 1.0)),
        "rare": lambda: normal(random, y, (0.0, 0.5), (1.0, 1.6)),
    }[generator]
    X = [make(), make()]
    return X, np.where(random.random(n) < 0.2, 1 - y, y) if generator == "flipped" else y


def linear(X, y, rows, covariance):
    """Return predictions by the distance to the class means; LDA with the pooled covariance."""
    means = np.array([X[y == c].mean(axis=0) for c in (0, 1)])
    w = means[1] - means[0]
    shift = 0.0
    if covariance:
        w = np.linalg.solve(np.cov((X - means[y]).T), w)
        shift = np.log(y.mean() / (1 - y.mean()))
    return (rows - means.mean(axis=0)) @ w + shift > 0


def quadratic(X, y, rows):
    """Return predictions by least squares on products of features, ridge by leave-one-out."""
    i, j = np.triu_indices(D)
    center, scale = X.mean(axis=0), X.std(axis=0)

    def features(Z):
        Z = (Z - center) / scale
        return np.hstack([Z, Z[:, i] * Z[:, j]])

    F, t = features(X), 2.0 * y - 1
    mean, target = F.mean(axis=0), t.mean()
    U, s, Vt = np.linalg.svd(F - mean, full_matrices=False)
    best = (np.inf, 0.0)
    for ridge in 10.0 ** np.arange(-1, 5):
        shrunk = s**2 / (s**2 + ridge)
        fitted = target + U @ (shrunk * (U.T @ t))
        leverage = 1 / len(t) + (U**2) @ shrunk
        best = min(best, (float(np.mean(((t - fitted) / (1 - leverage)) ** 2)), ridge))
    w = Vt.T @ (s / (s**2 + best[1]) * (U.T @ t))
    return (features(rows) - mean) @ w + target > 0


def neighbours(X, y, rows):
    """Return predictions by the three nearest training rows."""
    distances = (X**2).sum(axis=1) - 2 * rows.astype(np.float32) @ X.T.astype(np.float32)
    return y[np.argpartition(distances, 2, axis=1)[:, :3]].sum(axis=1) > 1


def tree(X, y, rows):
    return DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y).predict(rows) > 0


LEARNERS = {
    "nearest mean": lambda *data: linear(*data, covariance=False),
    "LDA": lambda *data: linear(*data, covariance=True),
    "quadratic": quadratic,
    "tree": tree,
    "3-NN": neighbours,
}
GENERATORS = ("twonorm", "ringnorm", "waveform", "flipped", "rare")


def test_parts(rule, n, size, repeats, random):
    """Yield the indices of the test rows of each split."""
    for _ in range(repeats):
        order = random.permutation(n)
        yield from np.array_split(order, size) if rule == "kfold" else [order[size:]]


def tests_of(protocol, generator, learner, random):
    """Return one pool's difference, and the critical difference of each test."""
    rule, n, size, repeats, _ = PROTOCOLS[protocol]
    X, y = pool(generator, n, random)
    rows, tested, d_j, q, n_test = np.zeros(n), np.zeros(n), [], [], []
    for test in test_parts(rule, n, size, repeats, random):
        train = np.setdiff1d(np.arange(n), test)
        a, b = (LEARNERS[learner](Z[train], y[train], Z[test]) == y[test] for Z in X)
        h = a.astype(int) - b
        rows[test] += h
        tested[test] += 1
        d_j.append(100 * h.mean())
        q.append(100 * abs(h).mean())
        n_test.append(len(test))
    sizes = n - np.array(n_test), np.array(n_test)
    found = difference(d_j, *sizes, rows, tested, rule=rule, q=float(np.mean(q)))
    t = stdtrit(found.k - 1, 0.975) if found.k > 1 else np.nan
    nb = found.S2 * (1 / found.k + found.n_test / found.n_train)
    return found.d, (t * np.sqrt(found.S2 / found.k), t * np.sqrt(nb), found.critical())


def cell(protocol, generator, learner, pools):
    """Return the percentages of significant differences, and the number of pools."""
    random = np.random.default_rng(zlib.crc32(f"{protocol} {generator} {learner}".encode()))
    found = [tests_of(protocol, generator, learner, random) for _ in range(pools)]
    d, critical = np.array([own[0] for own in found]), np.array([own[1] for own in found])
    values = []
    for limits in critical.T:
        values.append(100 * np.mean(abs(d) > limits))
        values += [50 * (np.mean(d + s > limits) + np.mean(s - d > limits)) for s in SHIFTS[1:]]
    values = [
        "" if np.isnan(critical[:, k // len(SHIFTS)]).any() else f"{v:.1f}"
        for k, v in enumerate(values)
    ]
    return dict(zip(NAMES, values, strict=True)) | {"pools": pools}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pools", type=float, default=1.0)
    options = parser.parse_args()
    with options.out.open("w", newline="", encoding="utf-8") as file:
        names = ["protocol", "generator", "learner", "pools", *NAMES]
        table = csv.DictWriter(file, names, lineterminator="\n")
        table.writeheader()
        for protocol, (*_, pools) in PROTOCOLS.items():
            for learner in LEARNERS:
                n = max(3, round(options.pools * pools / SLOW.get(learner, 1)))
                for generator in GENERATORS:
                    place = {"protocol": protocol, "generator": generator, "learner": learner}
                    table.writerow(place | cell(protocol, generator, learner, n))
            file.flush()


if __name__ == "__main__":
    main()
