"""Peak memory of SVM and RMM on the largest pair of full MNIST, 1 against 7.

    python benchmarks/rmm_memory.py --mirror FOLDER [--degree 2] [--C 1000]

13007 digits of unit length, poly divided to trace n; the RMM at half the SVM's range, from its
solution. Prints the largest resident memory that the process had after each training, Python, the
libraries and the digits included, as they were before the first.
"""

from __future__ import annotations

import argparse
import gzip
import resource

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.machines import RMM, SVM

PAIR = (1, 7)


def digits(mirror):
    """Return the training digits of the pair, of unit length, and their labels."""
    with gzip.open(f"{mirror}/mnist/train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read()[8:], dtype=np.uint8)
    rows = np.flatnonzero(np.isin(labels, PAIR))
    with gzip.open(f"{mirror}/mnist/train-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read()[16:], dtype=np.uint8).reshape(-1, 784)[rows].astype(float)
    return X / np.linalg.norm(X, axis=1, keepdims=True), labels[rows]


def peak():
    """Return the largest resident memory so far, in 10^9 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--degree", type=int, default=2)
    parser.add_argument("--C", type=float, default=1000.0)
    options = parser.parse_args()
    X, y = digits(options.mirror)
    print(f"{len(y)} digits loaded: {peak():.2f} GB")
    settings = {"kernel": "poly", "degree": options.degree, "kernel_scaling": "trace"}
    with threadpool_limits(1):
        for machine in (SVM(C=options.C, **settings), RMM(C=options.C, **settings)):
            fit = machine.fit(X, y).fits_[0]
            print(f"{type(machine).__name__}: {peak():.2f} GB, relative gap {fit.gap:.1e}")


if __name__ == "__main__":
    main()
