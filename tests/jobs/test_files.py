"""The lock of a results folder on a file system without locks."""

from __future__ import annotations

import errno

import filelock
import pytest

from mmbench.jobs.store import exclusive


def test_a_file_system_without_locks_is_said_and_used(tmp_path, monkeypatch):
    def refuse(lock):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with pytest.warns(UserWarning, match="cannot be locked"), exclusive(tmp_path / ".lock"):
        pass
