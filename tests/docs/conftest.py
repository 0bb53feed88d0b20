"""Fixtures of the tests of the documentation."""

from helpers.browser import browser  # noqa: F401
