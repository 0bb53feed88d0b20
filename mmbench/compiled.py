"""The decorators `compiled` and `compiled_inside`: `njit` of Numba with fixed options.

The import of Numba fails if NUMBA_NUM_THREADS is not a positive integer, and cached functions need
a writable folder with free space; both are corrected first.
"""

import os
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np


def _writable(folder: Path) -> str:
    """Try to write a file to a folder. Return the error message, or an empty text on success."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(2**16))  # an empty file can be written even if the disk is full
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _prepare() -> bool:
    """Correct the environment variables of Numba. Return whether the cache folder is writable."""
    threads = os.environ.get("NUMBA_NUM_THREADS")
    if threads is not None and not (threads.isdecimal() and int(threads)):
        warnings.warn(f"NUMBA_NUM_THREADS={threads} is no number of threads: ignored", stacklevel=3)
        del os.environ["NUMBA_NUM_THREADS"]
    given = os.environ.get("NUMBA_CACHE_DIR")
    beside = Path(__file__).parent / "kernels" / "__pycache__"
    # without a home folder, `expanduser` returns a relative path, which `_access` rejects
    home = Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"), "numba")
    folder = Path(given) if given else next(filter(_access, (beside, home)), None)
    problem = _writable(folder) if folder else "no folder"
    if problem and given:
        text = f"NUMBA_CACHE_DIR={given}: {problem}; compiled functions are cached elsewhere"
        warnings.warn(text, stacklevel=3)
    if problem:
        with suppress(OSError):
            os.environ["NUMBA_CACHE_DIR"] = elsewhere = _temporary()
            problem = _writable(Path(elsewhere))
    return not problem


def _access(folder: Path) -> bool:
    """Return True if `folder` is an absolute path, and is writable or can be created."""
    if not folder.is_absolute():
        return False
    while not folder.exists():
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)


def _temporary() -> str:
    """Return a private cache folder of the user in the system's folder for temporary files."""
    user = getattr(os, "getuid", lambda: 0)()  # Windows has one temporary folder per user
    folder = Path(tempfile.gettempdir()) / f"mmbench-numba-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != user:  # never load the compiled code of another user
        return tempfile.mkdtemp(prefix="mmbench-numba-")
    return str(folder)


#: Fast-math flags of LLVM: infinity is allowed, NaN not, since a Gram matrix with NaN is refused.
FLAGS = {"nnan", "nsz", "contract", "reassoc"}

compiled_inside: Callable[..., Any]

CACHE = _prepare()
try:
    from numba import njit

    def compiled(plain: Callable | None = None, **options: Any) -> Callable[..., Any]:
        """Return a decorator that compiles a function."""
        return njit(nogil=True, cache=CACHE, error_model="numpy", fastmath=FLAGS, **options)

    #: For functions that only compiled functions call; a call from Python would end the process.
    compiled_inside = partial(compiled, no_cpython_wrapper=True, no_cfunc_wrapper=True)
except ImportError:
    warnings.warn(
        "Numba is not installed: training with a nonlinear kernel takes up to 200 times as long; "
        "install it by `pip install numba`",
        stacklevel=2,
    )

    def compiled(plain: Callable | None = None, **options: Any) -> Callable[..., Any]:
        """Return a decorator for interpreted functions, which divide by zero without a warning.

        A function of NumPy, `plain`, replaces a function whose loops would be slow.
        """
        return lambda function: plain or wraps(function)(np.errstate(all="ignore")(function))

    def compiled_inside(plain: Callable | None = None) -> Callable[..., Any]:
        """Return a decorator that changes nothing: the calling function ignores warnings."""
        return lambda function: plain or function
