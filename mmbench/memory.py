"""Free and allowed memory, and upper bounds on the memory of trainings.

If memory runs out, the operating system kills a process without a message. Therefore, a training
that does not fit is refused before it begins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from mmbench.allowance import memory_limit
from mmbench.errors import BeyondLimit, NotEnoughMemory

#: Default of `cache_size`: a fraction of the free memory, but at most MOST_CACHE_BYTES.
FREE_SHARE, MOST_CACHE_BYTES = 0.125, 1e9

#: Smaller trainings are not checked: reading the free memory takes two milliseconds.
LEAST_CHECKED_BYTES = 2**28

#: Advice in the message about a training that does not fit into memory.
ADVICE = (
    "use fewer rows, or SVM, RMM or MAMC, which do not store the whole kernel matrix with their "
    "default solvers, or, on sparse rows with kernel 'linear', LSSVM"
)

#: Memory of reference solvers, in Gram matrices: a factorization, two sparse copies at 12 bytes.
REFERENCE_GRAMS = 12

#: Floats per row in a training without a Gram matrix, and copies of sparse rows in products.
ROW_VECTORS, SPARSE_COPIES = 70, 4


class TrainingSize(NamedTuple):
    """The size of a binary training; its methods count arrays of this size in bytes."""

    #: Number of rows of both classes.
    n: int
    #: Number of features.
    d: int
    #: Mean memory of a sparse row (see `stored_numbers`); None for dense rows.
    n_stored: float | None = None
    #: Whether rows have weights.
    weighted: bool = False
    #: Number of bytes of a kernel value.
    itemsize: int = 8

    def grams(self, copies: float) -> float:
        """Return the memory of matrices of shape (n, n)."""
        return copies * self.itemsize * self.n**2

    def rows(self, copies: float) -> float:
        """Return the memory of copies of the rows, and of vectors of length n."""
        per_row = self.d if self.n_stored is None else min(self.d, self.n_stored)
        return 8 * (copies * per_row + ROW_VECTORS) * self.n

    def covariances(self, copies: float) -> float:
        """Return the memory of arrays of shape (d, min(n, d))."""
        return 8 * copies * self.d * min(self.n, self.d)

    def is_sparse(self, most_features: int) -> bool:
        """Return whether the rows are sparse, and n and d exceed `most_features`."""
        return self.n_stored is not None and min(self.n, self.d) > most_features

    def products(self) -> float:
        """Return the memory of a training that needs only products with sparse rows."""
        return self.rows(SPARSE_COPIES) + 8 * ROW_VECTORS * self.d

    def in_parts(self, whole: float, cache_size: float | None) -> float:
        """Return the memory of a training that stores kernel values up to `cache_size`.

        `whole` is the memory of the training if all kernel values are stored.
        """
        if cache_size is None and whole <= LEAST_CHECKED_BYTES:
            return whole
        return min(whole, cache_bytes(cache_size) + self.rows(2))


def cache_bytes(size: float | None) -> float:
    """Convert `size`, a value of `cache_size` in MB, to bytes; None stands for the default."""
    if size is not None:
        return 1e6 * size
    return min(MOST_CACHE_BYTES, FREE_SHARE * min(available_bytes(), allowed_bytes()))


def stored_numbers(X: Any) -> int | None:
    """Return the mean memory of a sparse row, in units of 8 bytes; None for dense rows.

    Each stored value of a sparse row takes 8 bytes, and its column index takes 4 bytes.
    """
    return 1 + int(1.5 * X.nnz / X.shape[0]) if hasattr(X, "nnz") else None


def check_free_memory(task: str, needed: float) -> None:
    """Raise an error if a task needs more memory than is free or allowed.

    Raises BeyondLimit if the task exceeds the memory limit of this process, and NotEnoughMemory if
    the task exceeds the free memory. `needed` is the memory footprint of the task in bytes.
    """
    if needed <= LEAST_CHECKED_BYTES:
        return
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


def available_bytes() -> float:
    """Return the free memory in bytes; infinity if psutil is not installed and no group limits it.

    The free memory is the minimum over the computer and all Linux control groups of this process.
    """
    free: list[float] = [math.inf, *_free_in_groups()]
    with suppress(ImportError):
        import psutil

        free.append(psutil.virtual_memory().available)
    return min(free)


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
