"""How much memory there is, and how much of it the kernel values of a training may take.

What a run has to know of a machine besides its parameters: how to search, how much memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mmbench.allowance import memory_limit
from mmbench.errors import BeyondLimit, NotEnoughMemory
from mmbench.machines.base.parameters import parameter, positive

#: What ``cache_size=None`` is: a share of the memory that is free, and no more than so many bytes.
FREE_SHARE, MOST_CACHE_BYTES = 0.125, 1e9

#: Trainings that need less are not checked: to ask what is free takes two milliseconds.
LEAST_CHECKED_BYTES = 2**28

#: What would do where a training does not fit.
ADVICE = "SVM, RMM and MAMC hold no whole kernel matrix, and fewer rows take less"


def cache_size() -> Any:
    """Declare the memory that the kernel values of a training may take."""
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
    """Raise an error if a task needs more memory than is free.

    Raises
    ------
    NotEnoughMemory
        A ``ValueError`` that says what it needs, what there is, and what would do; `BeyondLimit`
        where a limit of this process leaves less than is free.
    """
    free, left = available_bytes(), allowed_bytes()
    needs = f"{task} needs about {needed / 1e9:.1f} GB"
    if needed > left:
        raise BeyondLimit(f"{needs} of memory, {left / 1e9:.1f} GB are left of its limit; {ADVICE}")
    if needed > free:
        raise NotEnoughMemory(f"{needs} of memory, {free / 1e9:.1f} GB are free; {ADVICE}")


def allowed_bytes() -> float:
    """Return what the limit of this process leaves, infinity without one."""
    limit = memory_limit()
    if limit == math.inf:
        return limit
    import psutil

    return max(0.0, limit - psutil.Process().memory_info().rss)


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

#: Numbers that a machine without a whole Gram matrix holds for each row, and copies of the rows of
#: one that computes it in parts.
ROW_VECTORS, ROW_COPIES = 70, 2

#: Parts of a Gram matrix take no more than so many of it; up to so many rows a system of twice
#: their number is factorised besides.
PART_GRAMS, SMALL_PART_GRAMS, SMALL_PART_ROWS = 5, 12, 4000


@dataclass(frozen=True)
class SearchSpace:
    """How the hyper-parameters of a machine are searched where the user does not say.

    Parameters
    ----------
    auto_grids : mapping of str to (str, tuple)
        What ``auto`` means in a grid: ``{"B": ("B_fraction", (1.0, 0.75))}`` replaces axis B.
    prefer : mapping of str to {"small", "large", "near_one"}
        Which of several equally good grid points is taken, first key first.
    tol : float or None
        Tolerance of the trainings of a run's grid search; None for that of the final training.
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
    """What one training holds at once, so that a run knows beforehand whether a job fits.

    Parameters
    ----------
    gram_copies : int
        Arrays as large as a pair's Gram matrix, that matrix included.
    linear_gram_copies : int or None
        The same for a linear kernel, where rows take the place of most of them.
    linear_row_copies : int or None
        Arrays as large as a pair's rows that a linear kernel takes instead of any Gram matrix,
        beside some vectors.
    covariance_copies : int
        Besides, arrays as large as a covariance matrix, or as the rows where these are fewer than
        their features.
    rows_per_feature : int
        Rows a feature from which it does so.
    part_bytes : int
        Most bytes taken for parts of that matrix; larger ones, of hard data, ask what is free.
    weight_copies : int
        Arrays as large as a Gram matrix, or as the rows that take its place, that are held besides
        where rows have weights.
    in_parts : bool
        Whether `cache_size` bounds what kernel values take, where that is less.
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
        """Return what one binary training holds beside its data, rather too large than too small.

        Parameters
        ----------
        kernel : str
        shape : (int, int)
            Rows of the pair of classes, and their features.
        by_reference : bool, default=False
            Whether a reference solver trains, which takes the whole matrix.
        cache_bytes : float, default=inf
            What `cache_size` comes to.
        itemsize : int, default=8
            Bytes of a stored kernel value.
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
        """Return what a training holds whose rows have weights."""
        rows, more = self.linear_row_copies, self.weight_copies
        return replace(
            self,
            gram_copies=self.gram_copies + more,
            linear_row_copies=None if rows is None else rows + more,
            weight_copies=0,
        )

    def in_features(self, kernel: str, n_rows: int, n_features: int) -> bool:
        """Whether a training holds rows instead of any Gram matrix."""
        few = n_rows >= self.rows_per_feature * n_features
        return kernel == "linear" and self.linear_row_copies is not None and few

    def copies(self, kernel: str) -> int:
        """Return the arrays as large as a Gram matrix that a training with a kernel holds."""
        linear = kernel == "linear" and self.linear_gram_copies is not None
        return self.linear_gram_copies if linear else self.gram_copies  # type: ignore[return-value]
