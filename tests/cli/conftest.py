"""Fixtures of the command line's tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_places_from_outside(monkeypatch):
    """Keep the places that a developer has set from deciding a test."""
    monkeypatch.delenv("MMBENCH_MIRROR", raising=False)
    monkeypatch.delenv("MMBENCH_DATA", raising=False)
