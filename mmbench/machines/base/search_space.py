"""Default search spaces of the machines, and checks of the memory footprint of a training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scipy.sparse import issparse

from mmbench.allowance import memory_limit
from mmbench.errors import BeyondLimit, NotEnoughMemory
from mmbench.kernels.matrix import KernelLike
from mmbench.machines.base.parameters import parameter, positive

#: If `cache_size` is None, kernel values may use the fraction FREE_SHARE of the free memory, but at
#: most MOST_CACHE_BYTES bytes.
FREE_SHARE, MOST_CACHE_BYTES = 0.125, 1e9

#: The free memory is checked only before trainings that need more than LEAST_CHECKED_BYTES bytes,
#: since reading the free memory takes two milliseconds.
LEAST_CHECKED_BYTES = 2**28

#: Advice in the message about a training that does not fit into memory.
ADVICE = (
    "use fewer rows, or SVM, RMM or MAMC, which do not store the whole kernel matrix with their "
    "default solvers, or, on sparse rows with kernel 'linear', LSSVM"
)


def cache_size() -> Any:
    """Declare the parameter `cache_size`, the memory for kernel values in training."""
    return parameter(
        None,
        positive(optional=True),
        "Memory for kernel values in MB (10^6 bytes) in the training of a pair of classes; by "
        "default an eighth of the free memory, at most 1000 MB. A kernel matrix of up to 3000 "
        "rows, or of ``rbf`` with up to 64 features, is stored if it fits into this memory; of "
        "another kernel matrix, some rows are stored. Blocks of the kernel matrix use up to 10 MB "
        "in any case. The solution does not depend on this parameter.",
        after="tol",
    )


def cache_bytes(size: float | None) -> float:
    """Convert `size`, a value of `cache_size` in MB, to bytes; None stands for the default."""
    if size is not None:
        return 1e6 * size
    return min(MOST_CACHE_BYTES, FREE_SHARE * min(available_bytes(), allowed_bytes()))


def stored_numbers(X: Any) -> int | None:
    """Return the mean memory of a sparse row, in units of 8 bytes; None for dense rows.

    Each stored value of a sparse row takes 8 bytes, and its column index takes 4 bytes.
    """
    return 1 + int(1.5 * X.nnz / X.shape[0]) if issparse(X) else None


def check_free_memory(task: str, needed: int) -> None:
    """Raise an error if a task needs more memory than is free or allowed.

    Raises BeyondLimit if the task exceeds the memory limit of this process, and NotEnoughMemory if
    the task exceeds the free memory. `needed` is the memory footprint of the task in bytes.
    """
    free, left = available_bytes(), allowed_bytes()
    needs = f"{task} needs about {needed / 1e9:.1f} GB"
    if needed > left:
        raise BeyondLimit(f"{needs} of memory; its limit leaves {left / 1e9:.1f} GB; {ADVICE}")
    if needed > free:
        raise NotEnoughMemory(f"{needs} of memory, {free / 1e9:.1f} GB are free; {ADVICE}")


def allowed_bytes() -> float:
    """Return the memory in bytes that this process may still use within its memory limit.

    If there is no memory limit, infinity is returned.
    """
    limit = memory_limit()
    return limit if limit == math.inf else max(0.0, limit - private_bytes())


def private_bytes(process_id: int | None = None) -> int:
    """Return the resident memory, in bytes, of this process or of the process `process_id`.

    The memory of the child processes of `process_id` is included. Shared pages (for example mapped
    files) are not counted if the system reports their size.
    """
    import psutil

    total = 0
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(process_id)
        family = first.children(recursive=True) if process_id else []
        for process in (first, *family):
            with suppress(psutil.NoSuchProcess):
                found = process.memory_info()
                total += found.rss - getattr(found, "shared", 0)
    return total


def available_bytes() -> int:
    """Return the free memory in bytes.

    The free memory is the minimum over the computer and all Linux control groups of this process.
    """
    import psutil

    return min([psutil.virtual_memory().available, *_free_in_groups()])


def _free_in_groups(root: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Yield the free memory of each control group of this process that has a memory limit.

    Versions 1 and 2 of Linux control groups are supported.
    """
    # inside a container, `root` is usually the control group of the container
    for folder in _own_groups(root):
        for limit, usage, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            try:
                top = int((folder / limit).read_text())
                used = int((folder / usage).read_text())
                lines = (folder / "memory.stat").read_text().splitlines()
                stat = dict(line.split() for line in lines)
            except (OSError, ValueError):
                # the file `limit` belongs to the other version of control groups, or contains "max"
                # (no limit)
                continue
            # memory of cached files counts as free, since the operating system releases it if a
            # process needs memory
            yield max(0, top - used + int(stat.get(cache, 0)))


def _own_groups(root: Path) -> Iterator[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory") and ".." not in path:
            base = root / controllers
            relative = Path(path.lstrip("/"))
            yield from (base / group for group in (relative, *relative.parents))


#: Upper bound on the memory footprint of reference solvers, in units of the Gram matrix. For
#: example, the solver of a linear program stores a factorization and two copies of the dense
#: constraint matrix, in a sparse format with 12 bytes per number.
REFERENCE_GRAMS = 8

#: Solvers of other packages that need the whole Gram matrix, even for machines whose other solvers
#: compute the Gram matrix in blocks.
WHOLE_GRAM = ("libsvm", "sklearn", "highs_ipm", "clarabel", "ecos")

#: Workspace of a solver that does not store the Gram matrix: number of floats per row, and number
#: of copies of X.
ROW_VECTORS, ROW_COPIES = 70, 2

#: Number of copies of sparse rows in a training that needs only products with these rows.
SPARSE_COPIES = 4

#: Upper bound on the workspace for blocks of the Gram matrix of n rows: PART_GRAMS matrices of size
#: n x n, or SMALL_PART_GRAMS matrices of size m x m if these are larger. The size m is the minimum
#: of n and SMALL_PART_ROWS. SMALL_PART_GRAMS is larger than PART_GRAMS, since the MMRM also stores
#: the factors of a matrix of order 2m.
PART_GRAMS, SMALL_PART_GRAMS, SMALL_PART_ROWS = 5, 12, 4000


#: The automatic grid of the width of ``rbf`` for all machines, in units of ``1 / (n_features *
#: X.var())``: experiments combine it with ``gamma_scaling="variance"``.
GAMMA_GRID = {"gamma": ("gamma", tuple(2.0**k for k in range(-7, 8, 2)))}


@dataclass(frozen=True)
class SearchSpace:
    """The default grid search of a machine.

    Parameters
    ----------
    auto_grids : mapping of str to (str, tuple)
        For each grid axis that may have the value ``auto``, the parameter that replaces the axis,
        and the values of this parameter. For example, ``{"B": ("B_fraction", (1.0, 0.75))}``
        replaces the axis B by two values of B_fraction.
    prefer : mapping of str to {"small", "large", "near_one"}
        Preferred values of parameters among grid points with equal scores: small values, large
        values, or values with a small absolute logarithm ("near_one"). Ties are broken by the first
        parameter of `prefer`, then by the second parameter, and so on.
    tol : float or None
        Tolerance of the trainings in a grid search, or None for the parameter `tol` of the machine.
    single_precision : bool
        Whether kernel values of magnitude about 1 may be stored in float32 during the search.
    """

    auto_grids: Mapping[str, tuple[str, tuple]] = field(default_factory=dict)
    prefer: Mapping[str, str] = field(default_factory=dict)
    tol: float | None = None
    single_precision: bool = True

    def extended(
        self, auto_grids: Mapping[str, tuple[str, tuple]] | None = None, **changes: Any
    ) -> SearchSpace:
        """Return a copy with additional automatic grids and with changed fields."""
        return replace(self, auto_grids={**self.auto_grids, **(auto_grids or {})}, **changes)


@dataclass(frozen=True)
class MemoryNeeds:
    """The memory footprint of one binary training, which is compared with the free memory.

    n is the number of rows of the pair of classes, d the number of features.

    Parameters
    ----------
    gram_copies : int
        Number of n x n arrays in memory during training, including the Gram matrix.
    linear_gram_copies : int or None
        Number of n x n arrays with a linear kernel, by default `gram_copies`.
    linear_row_copies : int or None
        Number of n x d arrays with a linear kernel, or None if a linear kernel needs the Gram
        matrix.
    covariance_copies : int
        Number of d x min(n, d) arrays with a linear kernel, in addition to `linear_row_copies`.
    rows_per_feature : int
        Minimum ratio n / d for which a training with a linear kernel needs no Gram matrix.
    most_features : int or None
        A training with a linear kernel and sparse rows needs no n x n and no d x d array if n and d
        exceed `most_features`. None if it always needs one of these arrays.
    part_bytes : int
        Upper bound on the workspace for blocks of the Gram matrix, in bytes. If the blocks need
        more than `part_bytes`, the free memory is checked during training.
    weight_copies : int
        Number of additional arrays (n x n, or n x d with a linear kernel) for row weights.
    in_parts : bool
        Whether `cache_size` bounds the memory for kernel values.
    """

    gram_copies: int = 1
    linear_gram_copies: int | None = None
    linear_row_copies: int | None = None
    covariance_copies: int = 3
    rows_per_feature: int = 0
    most_features: int | None = None
    part_bytes: int = 0
    weight_copies: int = 0
    in_parts: bool = False

    def by_reference(self, solver: object) -> bool:
        """Return whether a solver needs as much memory as the solver "reference"."""
        return solver == "reference" or (self.in_parts and solver in WHOLE_GRAM)

    def training_bytes(
        self,
        kernel: KernelLike,
        shape: tuple[int, int],
        by_reference: bool = False,
        cache_bytes: float = math.inf,
        itemsize: int = 8,
        n_stored: float | None = None,
    ) -> int:
        """Return an upper estimate of the memory of one training in bytes, excluding the data.

        `shape` is the number of rows and of features, and `itemsize` is the number of bytes of a
        stored kernel value. `by_reference` is true for solvers that store the whole Gram matrix.
        `cache_bytes` is the maximum memory for kernel values if `in_parts` is true. `n_stored` is
        the size of a sparse row (see `stored_numbers`), or None for dense rows.
        """
        n, d = shape
        per_row = d if n_stored is None else min(d, n_stored)
        if self.on_sparse_rows(kernel, n, d, n_stored) and not by_reference:
            blocks = cache_bytes if self.in_parts and cache_bytes < math.inf else 0
            return int(blocks + 8 * (SPARSE_COPIES * per_row * n + ROW_VECTORS * (n + d)))
        if self.in_features(kernel, n, d) and not by_reference:
            assert self.linear_row_copies is not None
            own = self.covariance_copies * d * min(n, d)
            return int(8 * ((self.linear_row_copies * per_row + ROW_VECTORS) * n + own))
        grams = max(self.copies(kernel), REFERENCE_GRAMS if by_reference else 0)
        needed: float = grams * itemsize * n**2
        of_few_rows = SMALL_PART_GRAMS * 8 * min(n, SMALL_PART_ROWS) ** 2
        parts = min(self.part_bytes, max(of_few_rows, PART_GRAMS * 8 * n**2))
        if self.in_parts and not by_reference:
            needed = min(needed, cache_bytes + 8 * n * (ROW_COPIES * per_row + ROW_VECTORS))
        return int(needed + parts)

    def with_weights(self) -> MemoryNeeds:
        """Return the memory footprint of a training with row weights."""
        rows, more = self.linear_row_copies, self.weight_copies
        return replace(
            self,
            gram_copies=self.gram_copies + more,
            linear_row_copies=None if rows is None else rows + more,
            weight_copies=0,
        )

    def on_sparse_rows(
        self, kernel: KernelLike, n_rows: int, n_features: int, n_stored: float | None
    ) -> bool:
        """Return whether a training needs only products with sparse rows."""
        many = self.most_features is not None and min(n_rows, n_features) > self.most_features
        return kernel == "linear" and n_stored is not None and many

    def in_features(self, kernel: KernelLike, n_rows: int, n_features: int) -> bool:
        """Return whether a training uses the features and needs no Gram matrix."""
        few = n_rows >= self.rows_per_feature * n_features
        return kernel == "linear" and self.linear_row_copies is not None and few

    def copies(self, kernel: KernelLike) -> int:
        """Return the number of n x n arrays in memory during training."""
        linear = kernel == "linear" and self.linear_gram_copies is not None
        return self.linear_gram_copies if linear else self.gram_copies  # type: ignore[return-value]
