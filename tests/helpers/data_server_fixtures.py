"""Fixtures: a data server on the loopback address, and an empty local store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.data_server import DataServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[DataServer]:
    """A data server; no proxy stands between, and silence ends after a second."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    monkeypatch.setenv("MMBENCH_TIMEOUT", "1")
    one = DataServer()
    monkeypatch.setenv("MMBENCH_OPENML_SERVER", f"{one.url}/api/v1/xml")
    yield one
    one.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"
