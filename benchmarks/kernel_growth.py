"""Growth of kernel SVM and RMM with the number of rows, beside libsvm and Intel's SVC.

    python benchmarks/kernel_growth.py --mirror FOLDER [--rows 2000 8000 20000 60000]
        [--B-fraction 0.5] [--repeats 1] [--only SVM RMM SVC "Intel's SVC" MMRM]

MNIST, odd against even digits, 80 principal components, rbf with C = 10 and gamma = 2^-6. Each
training has a process of its own with one thread; of several, which take turns, the fastest counts.
Printed are CPU seconds of `fit`, the peak memory of the process (Python, libraries and digits
included), the value of the dual and the ratio of CPU seconds to the first's; of our machines the
time of the decision values of all training rows, too: no certificate over all rows takes less. Then
the exponents in n. scikit-learn's SVC has a cache of 2 GB and its own tolerance, 1e-3 (ours: 1e-5).
Intel's SVC is left out where scikit-learn-intelex is not installed. MMRM is measured where it is
asked for.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec

import numpy as np

C, GAMMA = 10.0, 2.0**-6
CONTENDERS = ("SVM", "RMM", "SVC", "Intel's SVC")


def digits(mirror):
    """Return the principal components of all training digits, and +1 for odd ones."""
    with gzip.open(f"{mirror}/mnist/train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read()[8:], dtype=np.uint8)
    with gzip.open(f"{mirror}/mnist/train-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read()[16:], dtype=np.uint8).reshape(-1, 784) / 255.0
    X -= X.mean(axis=0)
    _, axes = np.linalg.eigh(X.T @ X)
    return X @ axes[:, :-81:-1], np.where(labels % 2, 1.0, -1.0)


def machine(name, B_fraction):
    """Return an unfitted estimator."""
    if name in ("SVM", "RMM", "MMRM"):
        from mmbench.machines import MMRM, RMM, SVM

        if name != "RMM":
            return {"SVM": SVM, "MMRM": MMRM}[name](C=C, gamma=GAMMA)
        return RMM(C=C, gamma=GAMMA, B_fraction=B_fraction)
    if name == "SVC":
        from sklearn.svm import SVC
    else:
        from sklearnex.svm import SVC
    return SVC(C=C, gamma=GAMMA, cache_size=2000)


def dual_value(model, y):
    """Return the value of the dual: a lower bound of the optimum."""
    if hasattr(model, "fits_"):
        return model.fits_[0].bound
    from mmbench.kernels import Kernel
    from mmbench.machines.base.problem import expand

    u, support = model.dual_coef_, model.support_vectors_
    f = expand(Kernel("rbf", gamma=GAMMA), support, support, u)[:, 0]
    return float(np.abs(u).sum() - 0.5 * u[0] @ f)


def train(name, n, path, B_fraction):
    """Train once and print the figures: what a process of its own does."""
    with np.load(path) as data:
        X, y = data["X"][:n].copy(), data["y"][:n].copy()
    small = machine(name, B_fraction)
    if hasattr(small, "set_params") and name in ("SVM", "RMM"):
        small.set_params(cache_size=0.1)  # compiles what is to be measured
    small.fit(X[:500], y[:500])
    model, started = machine(name, B_fraction), time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    facts = {"seconds": seconds, "peak": peak, "value": dual_value(model, y)}
    if hasattr(model, "fits_"):
        facts |= {"gap": model.fits_[0].gap, "status": str(model.fits_[0].status)}
        started = time.process_time()
        model.decision_function(X)
        facts |= {"support": len(model.support_), "decisions": time.process_time() - started}
    print(json.dumps(facts))


def measured(name, n, path, B_fraction):
    """Return the figures of one training in a process of its own, with one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--train", name, "--rows", str(n), "--digits", path]
    command += ["--B-fraction", str(B_fraction)]
    done = subprocess.run(
        command, env={**os.environ, **threads}, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def compare(sizes, path, contenders, repeats, B_fraction):
    """Print the figures of all contenders, and the growth of each."""
    names = [name for name in contenders if name != "Intel's SVC" or find_spec("sklearnex")]
    if len(names) < len(contenders):
        print("scikit-learn-intelex is not installed: left out")
    found = {}
    for n in sizes:
        runs = [
            {name: measured(name, n, path, B_fraction) for name in names} for _ in range(repeats)
        ]
        for name in names:
            one = found[name, n] = min((run[name] for run in runs), key=lambda run: run["seconds"])
            ratio = one["seconds"] / found[names[0], n]["seconds"]
            text = (
                f"{n:6d} rows  {name:11s} {one['seconds']:7.2f} s  {ratio:5.2f} times {names[0]}'s"
            )
            text += f"  {one['peak']:.2f} GB  dual value {one['value']:.6g}"
            if name in ("SVC", "Intel's SVC"):
                off = one["value"] / found[names[0], n]["value"] - 1
                text += f" ({off:+.0e} of {names[0]}'s)"
            else:
                text += (
                    f", relative gap {one['gap']:.0e}, {one['status']}, {one['support']} support"
                )
                text += f" vectors, {one['decisions']:.2f} s for the decision values of all rows"
            print(text, flush=True)
    for name in names if len(sizes) > 1 else ():
        few, many = found[name, sizes[0]]["seconds"], found[name, sizes[-1]]["seconds"]
        print(f"{name}: exponent in n {math.log(many / few, sizes[-1] / sizes[0]):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror")
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 8000, 20000, 60000])
    parser.add_argument("--B-fraction", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=(*CONTENDERS, "MMRM"), default=CONTENDERS)
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--digits", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.train, options.rows[0], options.digits, options.B_fraction)
        return
    if not options.mirror:
        parser.error("--mirror is the folder of the data")
    X, y = digits(options.mirror)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "digits.npz")
        np.savez(path, X=X, y=y)
        compare(options.rows, path, options.only, options.repeats, options.B_fraction)


if __name__ == "__main__":
    main()
