"""Tasks that a worker process can import: some of them never end, or end it."""

from __future__ import annotations

import ctypes
import os
import time

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


def segfault(*_):
    ctypes.string_at(0)


def leave(*_):
    os._exit(3)


def print_much(n_bytes):
    line = "x" * 1023
    for _ in range(n_bytes // 1024):
        print(line)
