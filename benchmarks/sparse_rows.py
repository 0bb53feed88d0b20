"""Linear SVM on sparse rows of many features: CPU time of each route in units of LinearSVC's.

    python benchmarks/sparse_rows.py [--rows 2000 10000] [--features 20000] [--entries 38] [--C 1]

Rows are documents with words of Zipf's frequencies, weighted and normalised as TF-IDF. The excess
of an objective is relative to the bound of coordinate descent. LinearSVC regularises its intercept,
so its objective is taken at the best intercept for its weights. One thread, least of three fits.
"""

import argparse
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from mmbench.machines import SVM


def documents(n, d, entries):
    random = np.random.default_rng(0)
    words = 1 / (np.arange(d) + 10.0)
    columns = random.choice(d, size=n * entries, p=words / words.sum()).astype(np.int32)
    cells = np.repeat(np.arange(n, dtype=np.int32), entries), columns
    X = sparse.csr_array((np.ones(n * entries), cells), shape=(n, d))
    X.data = (1 + np.log(X.data)) * np.log((1 + n) / (1 + np.bincount(X.indices, minlength=d)))[
        X.indices
    ]
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    scores = X @ random.normal(size=d)
    scores = scores + 0.5 * scores.std() * random.normal(size=n)
    return X, np.where(scores > np.quantile(scores, 0.6), 1, -1)


def objective(w, X, y, C):
    """Return the SVM's objective at w and the best intercept."""
    kinks = y - X @ w
    kinks.sort()
    slopes = C * (np.arange(1, len(y) + 1) - np.count_nonzero(y > 0))
    margins = y * (X @ w + kinks[np.argmax(slopes >= 0)])
    return 0.5 * w @ w + C * np.maximum(0, 1 - margins).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[2000, 10000])
    parser.add_argument("--features", type=int, default=20000)
    parser.add_argument("--entries", type=int, default=38)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--smo", action="store_true", help="pairwise steps too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    machines = {
        "LinearSVC": LinearSVC(C=options.C, loss="hinge", random_state=0),
        "coordinates": SVM(kernel="linear", C=options.C),
    }
    if options.smo:
        machines["smo"] = SVM(kernel="linear", C=options.C, solver="smo")
    few = documents(200, options.features, options.entries)
    for n in options.rows:
        X, y = documents(n, options.features, options.entries)
        seconds = {}
        for name, machine in machines.items():
            machine.fit(*few)
            taken = []
            for _ in range(3):
                start = time.process_time()
                machine.fit(X, y)
                taken.append(time.process_time() - start)
            seconds[name] = min(taken)
        bound = machines["coordinates"].fits_[0].bound
        for name, machine in machines.items():
            excess = objective(machine.coef_.ravel(), X, y, options.C) / bound - 1
            ratio = seconds[name] / seconds["LinearSVC"]
            print(
                f"{n:7} {name:12} {seconds[name]:8.3f} s {ratio:7.1f} x  excess {excess:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
