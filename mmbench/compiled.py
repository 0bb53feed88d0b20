"""Numba's `njit`, with environment variables that Numba can use.

Numba reads them when it is imported: a number of threads that is not positive ends the import, and
without a folder for its cache that can be written to, no function can be declared.
"""

import os
import tempfile
import warnings
from pathlib import Path


def _writable(folder: Path) -> str:
    """Return why a file cannot be written to a folder, empty if it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(2**16))  # a full disk takes an empty file
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _prepare() -> None:
    threads = os.environ.get("NUMBA_NUM_THREADS")
    if threads is not None and not (threads.isdecimal() and int(threads)):
        warnings.warn(f"NUMBA_NUM_THREADS={threads} is no number of threads: ignored", stacklevel=3)
        del os.environ["NUMBA_NUM_THREADS"]
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        if problem := _writable(Path(given)):
            text = f"NUMBA_CACHE_DIR={given}: {problem}; compiled functions are cached elsewhere"
            warnings.warn(text, stacklevel=3)
            os.environ["NUMBA_CACHE_DIR"] = _temporary()
        return
    beside = Path(__file__).parent / "kernels" / "__pycache__"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "numba"
    if not any(_access(folder) for folder in (beside, home)):
        os.environ["NUMBA_CACHE_DIR"] = _temporary()


def _access(folder: Path) -> bool:
    """Whether a folder can be written to, or made."""
    while not folder.exists():
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)


def _temporary() -> str:
    """Return a folder of this user in the folder for temporary files."""
    folder = Path(tempfile.gettempdir()) / f"mmbench-numba-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():  # somebody else's code is not run
        return tempfile.mkdtemp(prefix="mmbench-numba-")
    return str(folder)


_prepare()

from numba import njit  # noqa: E402

__all__ = ["njit"]
