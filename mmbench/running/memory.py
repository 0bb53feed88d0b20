"""Estimates of the peak memory of a job, computed before the job computes a Gram matrix.

If memory runs out, the operating system kills a process without a message. The killed process is
not always the process that needs the memory. The estimates of peak memory are upper bounds, so that
running jobs do not exceed the free memory. A comment in `_search_bytes` describes the only case in
which an estimate is too low. If the estimate of a job exceeds the free memory, the job is not run,
and its record states the reason. Each machine class declares the memory that one training needs.
The memory of a grid search is computed from the sizes of the kernel matrices that
`mmbench.selection.views` stores.
"""

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from mmbench.jobs.job import Job
from mmbench.machines import machine_class
from mmbench.machines.base.joint_training import JointClassifier
from mmbench.machines.base.problem import BLOCK_BYTES
from mmbench.machines.base.search_space import available_bytes, cache_bytes, private_bytes
from mmbench.selection.grid import KERNEL_AXES
from mmbench.selection.views import is_stored, precision

#: Memory of a worker process that has imported NumPy, scikit-learn, Numba and a solver, in bytes.
PROCESS_BYTES = 300 * 2**20
#: Number of copies of the data in memory: the loaded data, the preprocessed data, and the data in
#: the format of a machine.
DATA_COPIES = 3
#: Fraction of the free memory that jobs may use; the rest is a reserve if estimates are too low.
USABLE_SHARE = 0.9


@dataclass(frozen=True)
class Sizes:
    """The sizes of a job's data; these sizes determine the memory of the job."""

    #: Number of training rows per class; the total number if all classes are trained jointly.
    class_counts: tuple[int, ...]
    n_test: int
    #: Number of columns after preprocessing.
    n_features: int
    #: Number of columns before preprocessing.
    n_raw: int
    #: Number of rows that are used only for validation in the grid search.
    n_rest: int = 0
    #: Mean memory of a sparse row with its column indices, in units of 8 bytes; None for dense
    #: rows.
    n_stored: int | None = None

    @property
    def n_train(self) -> int:
        """Number of training rows of all classes."""
        return sum(self.class_counts)

    @property
    def largest_pair(self) -> int:
        """Number of training rows of the two largest classes."""
        return sum(sorted(self.class_counts)[-2:])

    @property
    def n_pairs(self) -> int:
        """Number of binary trainings: one per pair of classes, and at least one."""
        return max(1, comb(len(self.class_counts), 2))


def estimate_bytes(job: Job, sizes: Sizes, threads: int = 1) -> int:
    """Return an upper bound, in bytes, on the peak memory of a job with `threads` threads.

    Each thread trains one pair of classes at a time. If all pairs of classes are trained jointly,
    each thread trains on one inner split of the grid search at a time, with the rows of all
    classes.
    """
    n_rows = sizes.n_train + sizes.n_test + sizes.n_rest
    data = DATA_COPIES * 8 * n_rows * (sizes.n_stored or sizes.n_features)
    raw = 8 * n_rows * (sizes.n_stored or sizes.n_raw)
    fit = 2 * 8 * sizes.n_pairs * sizes.n_train  # the coefficients of all models
    joint = len(sizes.class_counts) > 2 and issubclass(machine_class(job.machine), JointClassifier)
    if joint and job.kernel != "linear":  # linear machines are trained on the features
        sizes = replace(sizes, class_counts=(sizes.n_train,))
    else:
        threads = min(threads, sizes.n_pairs)
    fit += min(threads, sizes.n_pairs) * _training_bytes(job, sizes, sizes.largest_pair)
    search = _search_bytes(job, sizes, threads) if job.grid else 0
    return PROCESS_BYTES + data + raw + 2 * BLOCK_BYTES * threads + max(fit, search)


def _training_bytes(job: Job, sizes: Sizes, n_rows: int, itemsize: int = 8) -> int:
    """Return an upper bound on the memory of one binary training without its data, in bytes."""
    params = dict(job.params) | {name: values[-1] for name, values in job.grid}
    needs = machine_class(job.machine).needs_at(params)
    reference = needs.by_reference(params.get("solver"))
    cache = cache_bytes(params.get("cache_size"))
    shape, stored = (n_rows, sizes.n_features), sizes.n_stored
    return needs.training_bytes(job.kernel, shape, reference, cache, itemsize, stored)


def _search_bytes(job: Job, sizes: Sizes, threads: int) -> int:
    """Return the memory of the stored kernel matrices and the trainings of a grid search, in bytes.

    If the pairs of classes share no kernel matrix, each thread stores the kernel matrix of one
    pair, unless this matrix exceeds `mmbench.selection.views.PAIR_BYTES`.
    """
    single = machine_class(job.machine).search_space.single_precision
    # Values of the rbf kernel are counted as float32. If features are so large that float64 is
    # needed (see `LARGEST_SINGLE_EXPONENT`), the stored matrices need twice this memory.
    itemsize = np.dtype(precision(job.kernel, single)).itemsize
    share = 1 - 1 / job.select.folds if job.select.folds else 1 - (job.select.split or 0)
    fold = _training_bytes(job, sizes, int(share * sizes.largest_pair), itemsize)
    if not (job.has_kernel and is_stored(sizes.largest_pair, job.kernel, single)):
        return threads * fold
    # if the grid has several values of a kernel parameter, the base matrix (inner products or
    # squared distances) is also stored
    widths = 2 if any(name in KERNEL_AXES and len(values) > 1 for name, values in job.grid) else 1
    # The kernel matrix of all rows is shared if all pairs of classes have the same parameters and
    # all rows are training rows. If all pairs are trained jointly, the matrix may also contain
    # validation rows.
    shared = len(sizes.class_counts) == 1 or (job.select.scope == "global" and not sizes.n_rest)
    n_rows = sizes.n_train + sizes.n_rest
    if shared and is_stored(n_rows, job.kernel, single, shared=True):
        return widths * itemsize * n_rows**2 + threads * fold
    return threads * (widths * itemsize * sizes.largest_pair**2 + fold)


def threads_that_fit(job: Job, sizes: Sizes, threads: int, budget: float) -> int:
    """Return the largest number of threads with which a job needs at most `budget` bytes.

    The returned number is at most `threads`, and is 0 if the job needs more than `budget` bytes
    even with one thread.
    """
    return next((n for n in range(threads, 0, -1) if estimate_bytes(job, sizes, n) <= budget), 0)


def budget_bytes(share: float = 1.0) -> float:
    """Return the memory that this process may use, in bytes.

    The returned number is the memory that this process uses already, plus ``USABLE_SHARE * share``
    times the free memory.
    """
    return private_bytes() + USABLE_SHARE * share * available_bytes()
