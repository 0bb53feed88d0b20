"""Files and locks on systems that lack a call: file systems without locks, and Windows."""

from __future__ import annotations

import errno
import os

import filelock
import pytest

from mmbench.jobs.disk import write_atomically
from mmbench.jobs.lock import exclusive


def test_a_file_system_without_locks_is_said_and_used(tmp_path, monkeypatch):
    def refuse(lock):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with pytest.warns(UserWarning, match="cannot be locked"), exclusive(tmp_path / ".lock"):
        pass


def test_windows_opens_no_folders_and_has_no_pwrite(tmp_path, monkeypatch):
    def only_files(path, *args, opened=os.open, **options):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *args, **options)

    monkeypatch.setattr(os, "open", only_files)
    monkeypatch.delattr(os, "pwrite")
    with exclusive(tmp_path / ".lock"):
        write_atomically(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
    assert (tmp_path / ".lock").read_text().startswith(f"process {os.getpid()} on ")
