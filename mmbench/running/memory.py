"""Will a job fit into memory? Asked before its first Gram matrix is built.

A process that takes too much is ended by the kernel without a word, and with it perhaps others. An
estimate that errs on the large side, and a record that says so, are better. What a training holds
is what its machine states; what a search holds follows from how `selection.views` stores matrices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from mmbench.jobs.job import Job, SplitRef
from mmbench.machines import machine_class
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.problem import BLOCK_BYTES
from mmbench.machines.base.search_space import available_bytes, cache_bytes
from mmbench.selection.grid import KERNEL_AXES
from mmbench.selection.views import can_share, precision, stores_pairs

#: A worker that has imported NumPy, scikit-learn, Numba and a solver.
PROCESS_BYTES = 300 * 2**20
#: Copies of all data that are alive together: as loaded, preprocessed, and validated by a machine.
DATA_COPIES = 3
#: Share of the free memory that jobs may claim: estimates are no promises.
USABLE_SHARE = 0.9

Machine = type[PairwiseClassifier]


@dataclass(frozen=True)
class Sizes:
    """What a job's memory depends on."""

    #: Training rows of each class.
    class_counts: tuple[int, ...]
    n_test: int
    #: Columns after preprocessing.
    n_features: int
    #: Columns before.
    n_raw: int
    #: Rows besides, that selection validates on.
    n_rest: int = 0
    #: Numbers that a sparse row takes, its columns' included; None for dense rows.
    n_stored: int | None = None

    @property
    def n_train(self) -> int:
        """Training rows of all classes."""
        return sum(self.class_counts)

    @property
    def largest_pair(self) -> int:
        """Training rows of the two largest classes."""
        return sum(sorted(self.class_counts)[-2:])

    @property
    def n_pairs(self) -> int:
        """Number of binary machines."""
        return max(1, len(self.class_counts) * (len(self.class_counts) - 1) // 2)


def stored_numbers(X: Any) -> int | None:
    """Return the numbers that a sparse row takes, half of one for its column; None if dense."""
    return None if isinstance(X, np.ndarray) else 1 + int(1.5 * X.nnz / X.shape[0])


def planned_sizes(
    job: Job,
    class_counts: Sequence[int],
    n_features: int,
    test_rows: int | None = None,
    train_rows: int | None = None,
) -> Sizes:
    """Return the sizes of a job from what a card knows, without reading data.

    Parameters
    ----------
    job : Job
    class_counts : sequence of int
        Rows of each class in the whole data set.
    n_features : int
    test_rows : int, optional
        Rows of the test part where the card fixes them (official and predefined splits).
    train_rows : int, optional
        Rows of the training part where the card fixes them; by default all that are not tested.
    """
    total = sum(class_counts)
    n_test = round(total * _test_share(job.split)) if test_rows is None else test_rows
    most = job.split.size or job.split.max_train or total
    if isinstance(most, tuple):
        counts = tuple(min(count, most[1]) for count in class_counts)
    else:
        n_train = min(total - n_test if train_rows is None else train_rows, most)
        counts = tuple(-(-count * n_train // total) for count in class_counts)
    steps = dict(job.dataset.preprocess)
    n_columns = steps.get("pca") or 2 * (steps.get("pair_pca") or 0)
    rest = max(0, total - n_test - sum(counts)) if job.validates_on_rest else 0
    return Sizes(counts, n_test, int(n_columns or n_features), n_features, rest)


def _test_share(split: SplitRef) -> float:
    argument = split.args[0] if split.args else 0.0
    return 1 / argument if split.rule in ("kfold", "time_series") else argument


def estimate_bytes(job: Job, sizes: Sizes, threads: int = 1) -> int:
    """Return the peak memory of the process that runs a job, rather too large than too small.

    Parameters
    ----------
    job : Job
    sizes : Sizes
    threads : int, default=1
        Pairs of classes that are trained at the same time.
    """
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
    """Return what one binary training holds beside its data: Gram matrices, and parts of one."""
    params = dict(job.params)
    largest = {name: values[-1] for name, values in job.grid if len(values)}
    return machine.needs_at({**params, **largest}).training_bytes(
        job.kernel,
        (n_rows, n_columns),
        params.get("solver") == "reference",
        cache_bytes(params.get("cache_size")),
        itemsize,
    )


def _search_bytes(job: Job, machine: Machine, sizes: Sizes, threads: int) -> int:
    """Return what selection holds: the matrix of all rows or one a pair, and one a fold."""
    single = machine.search_space.single_precision
    itemsize = np.dtype(precision(job.kernel, single)).itemsize
    share = 1 - 1 / job.select.folds if job.select.folds else 1 - (job.select.split or 0)
    fold = _training_bytes(
        job, machine, int(share * sizes.largest_pair), sizes.n_features, itemsize
    )
    # A linear kernel stores no matrix; without inner splits there is one fold, that of the pair.
    if job.kernel == "linear" or job.validates_on_rest:
        return threads * fold
    if not stores_pairs(sizes.largest_pair, job.kernel, single):  # nor do very large pairs
        return threads * fold
    # The base matrix is kept beside the kernel matrix while other widths are to come.
    widths = 2 if any(name in KERNEL_AXES and len(values) > 1 for name, values in job.grid) else 1
    if job.select.scope == "global" and can_share(sizes.n_train, job.kernel, single):
        return widths * itemsize * sizes.n_train**2 + threads * fold
    return threads * (widths * itemsize * sizes.largest_pair**2 + fold)


def threads_that_fit(job: Job, sizes: Sizes, threads: int, budget: float) -> int:
    """Return how many threads, at most `threads`, stay within `budget` bytes; 0 if none do."""
    for count in range(threads, 0, -1):
        if estimate_bytes(job, sizes, count) <= budget:
            return count
    return 0


def budget_bytes(share: float = 1.0) -> float:
    """Return what this process may hold in all: what it has, and its share of what is free."""
    return psutil.Process().memory_info().rss + USABLE_SHARE * share * available_bytes()
