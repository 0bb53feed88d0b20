"""How much memory there is, and how much of it the kernel values of a training may take."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmbench.allowance import memory_limit
from mmbench.errors import BeyondLimit, NotEnoughMemory
from mmbench.machines.parameter import parameter, positive

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
