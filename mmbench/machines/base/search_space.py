"""How a machine's parameters are searched, and how much memory a training takes of what is free."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mmbench.allowance import memory_limit
from mmbench.errors import BeyondLimit, NotEnoughMemory
from mmbench.machines.base.parameters import parameter, positive

#: ``cache_size=None`` is this share of the free memory, up to MOST_CACHE_BYTES.
FREE_SHARE, MOST_CACHE_BYTES = 0.125, 1e9

#: Trainings that need less are not checked: reading the free memory takes two milliseconds.
LEAST_CHECKED_BYTES = 2**28

#: Advice if a training does not fit.
ADVICE = "SVM, RMM and MAMC hold no whole kernel matrix, and fewer rows take less"


def cache_size() -> Any:
    """Declare the memory for kernel values in training."""
    return parameter(
        None,
        positive(optional=True),
        "Memory for kernel values in MB (10^6 bytes), of each pair of classes in training; by "
        "default an eighth of what is free, 1000 at most. A kernel matrix of up to 3000 rows that "
        "fits is stored; of a larger one as many rows are as fit. Parts of it take up to 10 MB in "
        "any case. The solution does not depend on it.",
        after="tol",
    )


def cache_bytes(size: float | None) -> float:
    """Return the bytes that a `cache_size` stands for."""
    if size is not None:
        return 1e6 * size
    return min(MOST_CACHE_BYTES, FREE_SHARE * min(available_bytes(), allowed_bytes()))


def refuse_what_does_not_fit(task: str, needed: int) -> None:
    """Raise NotEnoughMemory if a task needs more than is free, BeyondLimit if more than allowed."""
    free, left = available_bytes(), allowed_bytes()
    needs = f"{task} needs about {needed / 1e9:.1f} GB"
    if needed > left:
        raise BeyondLimit(f"{needs} of memory, {left / 1e9:.1f} GB are left of its limit; {ADVICE}")
    if needed > free:
        raise NotEnoughMemory(f"{needs} of memory, {free / 1e9:.1f} GB are free; {ADVICE}")


def allowed_bytes() -> float:
    """Return the memory left of the limit of this process, infinity without a limit."""
    limit = memory_limit()
    return limit if limit == math.inf else max(0.0, limit - private_bytes())


def private_bytes(process_id: int | None = None) -> int:
    """Return the resident memory of this process, or of another with all that it has started.

    Pages that are shared, such as those of mapped files, do not count where the system tells them
    apart.
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
    """Return the memory that is free for this process: of the computer, or of its control group."""
    import psutil

    return min([psutil.virtual_memory().available, *_free_in_groups()])


def _free_in_groups(root: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Yield the free memory of each control group around this process that has a limit.

    Reads versions 2 and 1; in a container the own group is usually mounted as the root.
    """
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
            except (OSError, ValueError):  # not this version, or "max": no limit
                continue
            yield max(0, top - used + int(stat.get(cache, 0)))  # cached files give way


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


#: Multiple of a Gram matrix that the reference linear program takes: two dense copies of it as
#: sparse columns (12 bytes a number), and the solver's own factors.
REFERENCE_GRAMS = 8

#: Workspace of a solver without a stored Gram matrix: floats per row, and copies of X.
ROW_VECTORS, ROW_COPIES = 70, 2

#: Upper bound on the workspace of parts, in Gram matrices; below SMALL_PART_ROWS rows a 2n x 2n
#: factorisation is added.
PART_GRAMS, SMALL_PART_GRAMS, SMALL_PART_ROWS = 5, 12, 4000


@dataclass(frozen=True)
class SearchSpace:
    """How the hyper-parameters of a machine are searched by default.

    Parameters
    ----------
    auto_grids : mapping of str to (str, tuple)
        Grids by the name ``auto``: ``{"B": ("B_fraction", (1.0, 0.75))}`` replaces axis B.
    prefer : mapping of str to {"small", "large", "near_one"}
        Preferred values among equally good grid points; the first key counts most.
    tol : float or None
        Tolerance of the trainings of a run's grid search; None for the machine's `tol`.
    single_precision : bool
        Whether kernel values of order 1 may be stored in float32 during the search.
    """

    auto_grids: Mapping[str, tuple[str, tuple]] = field(default_factory=dict)
    prefer: Mapping[str, str] = field(default_factory=dict)
    tol: float | None = None
    single_precision: bool = True

    def extended(
        self, auto_grids: Mapping[str, tuple[str, tuple]] | None = None, **changes: Any
    ) -> SearchSpace:
        """Return a copy with more automatic grids and other values of the fields named."""
        return replace(self, auto_grids={**self.auto_grids, **(auto_grids or {})}, **changes)


@dataclass(frozen=True)
class MemoryNeeds:
    """The memory footprint of one training, by which a run knows whether a job fits.

    Parameters
    ----------
    gram_copies : int
        Number of arrays of the size of a pair's Gram matrix, itself included.
    linear_gram_copies : int or None
        The same for a linear kernel; None for `gram_copies`.
    linear_row_copies : int or None
        Number of arrays of the size of a pair's rows, if a linear kernel needs no Gram matrix.
    covariance_copies : int
        Number of arrays of the size of a covariance matrix, or of the rows if these are fewer than
        their features, beside `linear_row_copies`.
    rows_per_feature : int
        Least rows per feature for which a linear kernel needs no Gram matrix.
    part_bytes : int
        Upper bound on parts of the Gram matrix, in bytes; larger parts are checked when needed.
    weight_copies : int
        Number of further arrays of that size if rows have weights.
    in_parts : bool
        Whether `cache_size` bounds the memory for kernel values.
    """

    gram_copies: int = 1
    linear_gram_copies: int | None = None
    linear_row_copies: int | None = None
    covariance_copies: int = 3
    rows_per_feature: int = 0
    part_bytes: int = 0
    weight_copies: int = 0
    in_parts: bool = False

    def training_bytes(
        self,
        kernel: str,
        shape: tuple[int, int],
        by_reference: bool = False,
        cache_bytes: float = math.inf,
        itemsize: int = 8,
    ) -> int:
        """Return an upper estimate of the memory of one binary training beside its data.

        `shape` is the number of rows of the pair and of their features; `itemsize` the bytes of a
        stored kernel value. A reference solver takes the whole matrix.
        """
        n, d = shape
        if self.in_features(kernel, n, d) and not by_reference:
            assert self.linear_row_copies is not None
            own = self.covariance_copies * d * min(n, d)
            return 8 * ((self.linear_row_copies * d + ROW_VECTORS) * n + own)
        grams = max(self.copies(kernel), REFERENCE_GRAMS if by_reference else 0)
        needed: float = grams * itemsize * n**2
        of_few_rows = SMALL_PART_GRAMS * 8 * min(n, SMALL_PART_ROWS) ** 2
        parts = min(self.part_bytes, max(of_few_rows, PART_GRAMS * 8 * n**2))
        if self.in_parts and not by_reference:
            needed = min(needed, cache_bytes + 8 * n * (ROW_COPIES * d + ROW_VECTORS))
        return int(needed + parts)

    def with_weights(self) -> MemoryNeeds:
        """Return the footprint of a training with weights of rows."""
        rows, more = self.linear_row_copies, self.weight_copies
        return replace(
            self,
            gram_copies=self.gram_copies + more,
            linear_row_copies=None if rows is None else rows + more,
            weight_copies=0,
        )

    def in_features(self, kernel: str, n_rows: int, n_features: int) -> bool:
        """Whether a training needs no Gram matrix."""
        few = n_rows >= self.rows_per_feature * n_features
        return kernel == "linear" and self.linear_row_copies is not None and few

    def copies(self, kernel: str) -> int:
        """Return the number of n x n arrays held during training."""
        linear = kernel == "linear" and self.linear_gram_copies is not None
        return self.linear_gram_copies if linear else self.gram_copies  # type: ignore[return-value]
