"""How many threads of BLAS a training may take."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

#: Rows of the largest pair of classes from which BLAS may take several threads: an MMRM on 200 rows
#: takes forty times as long with two as with one.
BLAS_THREADS_FROM_ROWS = 1000


@contextmanager
def blas_threads_for(n_rows: int) -> Iterator[None]:
    """Limit BLAS to one thread where matrices are so small that threads cost more than they do."""
    if n_rows >= BLAS_THREADS_FROM_ROWS:
        yield
    else:
        with blas().limit(limits=1):
            yield


@cache
def blas() -> Any:
    """Return the controller of the BLAS libraries; to find them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
