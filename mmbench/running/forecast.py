"""Upper bounds on the peak memory of a job, computed before the job computes a Gram matrix.

They add `bytes_needed` of the machine and the kernel matrices of a grid search. `_search_bytes`
names the only case in which the bound is too low.
"""

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from mmbench.errors import NotEnoughMemory
from mmbench.jobs.job import Job
from mmbench.jobs.prepare import Prepared
from mmbench.jobs.train import make_machine
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.machines.base.joint_training import JointClassifier
from mmbench.machines.base.problem import BLOCK_BYTES
from mmbench.memory import ADVICE, TrainingSize, available_bytes, private_bytes, stored_numbers
from mmbench.running.progress import readable
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


def sizes_of_data(data: Prepared) -> Sizes:
    """Return the sizes of the arrays of a job."""
    n_test, n_rest = len(data.y_test), len(data.y_pool) - len(data.y_train)
    n_raw, n_stored = data.split["n_features"], stored_numbers(data.X_train)
    return Sizes(data.class_counts, n_test, data.X_train.shape[1], n_raw, n_rest, n_stored)


def threads_that_fit(
    job: Job, sizes: Sizes, threads: int, share: float = 1.0, limit: float | None = None
) -> int:
    """Return the largest number of threads, up to `threads`, that the memory allows.

    The job may use the fraction `share` of the free memory, up to `limit`. Raises NotEnoughMemory
    if one thread needs more than the free memory. Above the limit, the job runs with one thread,
    since it may need less than the bound.
    """
    free = private_bytes() + USABLE_SHARE * share * available_bytes()
    needs = [estimate_bytes(job, sizes, n) for n in range(1, threads + 1)]
    if needs[0] > free:
        amounts = f"{readable(needs[0])} of memory, {readable(free)} may be used"
        raise NotEnoughMemory(f"needs about {amounts}; {ADVICE}")
    return max(1, sum(need <= min(free, limit or free) for need in needs))


def estimate_bytes(job: Job, sizes: Sizes, threads: int = 1) -> int:
    """Return an upper bound, in bytes, on the peak memory of a job with `threads` threads.

    Each thread trains one pair of classes at a time. If all pairs of classes are trained jointly,
    each thread trains on one inner split of the grid search at a time, with the rows of all
    classes.
    """
    machine = make_machine(job, 1, 0)
    if not isinstance(machine, ForeignClassifier):
        machine = machine.with_params({name: values[-1] for name, values in job.grid})
    n_rows = sizes.n_train + sizes.n_test + sizes.n_rest
    data = DATA_COPIES * 8 * n_rows * (sizes.n_stored or sizes.n_features)
    raw = 8 * n_rows * (sizes.n_stored or sizes.n_raw)
    fit = 2 * 8 * sizes.n_pairs * sizes.n_train  # the coefficients of all models
    joint = len(sizes.class_counts) > 2 and isinstance(machine, JointClassifier)
    if joint and job.kernel != "linear":  # linear machines are trained on the features
        sizes = replace(sizes, class_counts=(sizes.n_train,))
    else:
        threads = min(threads, sizes.n_pairs)
    size = TrainingSize(sizes.largest_pair, sizes.n_features, sizes.n_stored)
    training = min(threads, sizes.n_pairs) * machine.bytes_needed(size)
    search = _search_bytes(job, machine, sizes, size, threads) if job.grid else 0
    blocks = 2 * BLOCK_BYTES * threads
    return int(PROCESS_BYTES + data + raw + blocks + max(fit + training, search))


def _search_bytes(
    job: Job, machine: PairwiseClassifier, sizes: Sizes, size: TrainingSize, threads: int
) -> float:
    """Return the memory of the stored kernel matrices and the trainings of a grid search, in bytes.

    If the pairs of classes share no kernel matrix, each thread stores the kernel matrix of one
    pair, unless this matrix exceeds `mmbench.selection.views.PAIR_BYTES`.
    """
    single = machine.search_space.single_precision
    # Values of the rbf kernel are counted as float32. If features are so large that float64 is
    # needed (see `LARGEST_SINGLE_EXPONENT`), the stored matrices need twice this memory.
    itemsize = np.dtype(precision(job.kernel, single)).itemsize
    share = 1 - 1 / job.select.folds if job.select.folds else 1 - (job.select.split or 0)
    fold = machine.bytes_needed(size._replace(n=int(share * size.n), itemsize=itemsize))
    if not (job.has_kernel and is_stored(size.n, job.kernel, single)):
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
    return threads * (widths * itemsize * size.n**2 + fold)
