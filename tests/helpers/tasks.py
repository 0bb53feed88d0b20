"""Tasks that a worker process can import: some of them never end, or end it."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

from mmbench.running.local import tell


def nap(seconds, value=None):
    time.sleep(seconds)
    return value


def wait_in_python(*_):
    tell("selection")
    while True:
        time.sleep(0.01)


def hang(*_):
    tell("training")
    ctypes.PyDLL(None).pause()  # holds the interpreter's lock, so no Python code runs


def grow_without_end(*_):
    blocks = []
    while True:
        blocks.append(bytearray(2**24))
        blocks[-1][::4096] = bytes(2**12)  # resident, not only promised


def start_a_process(path):
    """Start a process that outlives its parent, write its number to a file, and wait."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(path).write_text(str(child.pid))
    child.wait()


def start_a_process_that_grows(*_):
    code = "from helpers.tasks import grow_without_end; grow_without_end()"
    subprocess.run([sys.executable, "-c", code], check=False)


def map_a_file(path, n_bytes):
    """Return the sum of the first bytes of the pages of a file that is read by mapping it."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        total = sum(pages[::4096])
        time.sleep(1)
    return total


def segfault(*_):
    ctypes.string_at(0)


def leave(*_):
    os._exit(3)


def print_much(n_bytes):
    line = "x" * 1023
    for _ in range(n_bytes // 1024):
        print(line)
