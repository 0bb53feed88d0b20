"""Estimates of the peak memory of a job, made before its first Gram matrix is computed.

If memory runs out, the operating system kills a process without a message, and not always the
process that needs the memory. Estimates are therefore upper bounds, and a job that does not fit
into memory ends with a message in its record. Machines declare the memory of a training; the memory
of a search follows from the matrices that `selection.views` stores.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmbench.jobs.job import Job
from mmbench.machines import machine_class
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.problem import BLOCK_BYTES
from mmbench.machines.base.search_space import available_bytes, cache_bytes, private_bytes
from mmbench.selection.grid import KERNEL_AXES
from mmbench.selection.views import can_share, precision, stores_pairs

#: Memory of a worker that has imported NumPy, scikit-learn, Numba and a solver, in bytes.
PROCESS_BYTES = 300 * 2**20
#: Number of simultaneous copies of all data: loaded, preprocessed, and validated by a machine.
DATA_COPIES = 3
#: Fraction of the free memory that jobs may use; the rest is a margin for errors of estimates.
USABLE_SHARE = 0.9

Machine = type[PairwiseClassifier]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a job's data, on which its memory depends."""

    #: Number of training rows per class.
    class_counts: tuple[int, ...]
    n_test: int
    #: Number of columns after preprocessing.
    n_features: int
    #: Number of columns before preprocessing.
    n_raw: int
    #: Number of rows that are used for validation in selection only.
    n_rest: int = 0
    #: Memory of a sparse row (values and column indices), in 8-byte numbers; None for dense rows.
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
        """Number of binary trainings."""
        return max(1, len(self.class_counts) * (len(self.class_counts) - 1) // 2)


def stored_numbers(X: Any) -> int | None:
    """Return the mean memory of a sparse row, in 8-byte numbers; None for dense rows.

    A column index counts as half a number.
    """
    return None if isinstance(X, np.ndarray) else 1 + int(1.5 * X.nnz / X.shape[0])


def estimate_bytes(job: Job, sizes: Sizes, threads: int = 1) -> int:
    """Return an upper estimate of the peak memory of a job, with one pair of classes per thread."""
    threads = min(threads, sizes.n_pairs)
    n_rows = sizes.n_train + sizes.n_test + sizes.n_rest
    data = DATA_COPIES * 8 * n_rows * (sizes.n_stored or sizes.n_features)
    raw = 8 * n_rows * (sizes.n_stored or sizes.n_raw)
    blocks = 2 * BLOCK_BYTES * threads
    expansions = 2 * 8 * sizes.n_pairs * sizes.n_train
    machine = machine_class(job.machine)
    rows, columns = sizes.largest_pair, sizes.n_features
    fit = threads * _training_bytes(job, machine, rows, columns) + expansions
    search = _search_bytes(job, machine, sizes, threads) if job.grid else 0
    return PROCESS_BYTES + data + raw + blocks + max(fit, search)


def _training_bytes(
    job: Job, machine: Machine, n_rows: int, n_columns: int, itemsize: int = 8
) -> int:
    """Return the memory of a binary training without its data; mainly Gram matrices or blocks."""
    params = dict(job.params)
    largest = {name: values[-1] for name, values in job.grid if len(values)}
    needs, shape = machine.needs_at({**params, **largest}), (n_rows, n_columns)
    reference = needs.by_reference(params.get("solver"))
    cache = cache_bytes(params.get("cache_size"))
    return needs.training_bytes(job.kernel, shape, reference, cache, itemsize)


def _search_bytes(job: Job, machine: Machine, sizes: Sizes, threads: int) -> int:
    """Return the memory of the matrices stored in selection.

    Either one matrix of all rows or one matrix per pair is stored, and in addition one matrix per
    fold.
    """
    single = machine.search_space.single_precision
    itemsize = np.dtype(precision(job.kernel, single)).itemsize
    share = 1 - 1 / job.select.folds if job.select.folds else 1 - (job.select.split or 0)
    n_rows = int(share * sizes.largest_pair)
    fold = _training_bytes(job, machine, n_rows, sizes.n_features, itemsize)
    # no matrix of a pair is stored if the kernel is linear, if there is a single fold (validation
    # on left-out rows), or if the matrix is too large
    stored = stores_pairs(sizes.largest_pair, job.kernel, single)
    if job.kernel == "linear" or job.validates_on_rest or not stored:
        return threads * fold
    # with several kernel parameters, the base matrix is stored in addition to the kernel matrix
    widths = 2 if any(name in KERNEL_AXES and len(values) > 1 for name, values in job.grid) else 1
    if job.select.scope == "global" and can_share(sizes.n_train, job.kernel, single):
        return widths * itemsize * sizes.n_train**2 + threads * fold
    return threads * (widths * itemsize * sizes.largest_pair**2 + fold)


def threads_that_fit(job: Job, sizes: Sizes, threads: int, budget: float) -> int:
    """Return the largest number of threads up to `threads` that need at most `budget` bytes.

    Return 0 if one thread needs more.
    """
    fits = (n for n in range(threads, 0, -1) if estimate_bytes(job, sizes, n) <= budget)
    return next(fits, 0)


def budget_bytes(share: float = 1.0) -> float:
    """Return the memory that this process may use, in bytes.

    The memory is the sum of the memory in use by the process and a fraction `share` of the usable
    free memory.
    """
    return private_bytes() + USABLE_SHARE * share * available_bytes()
