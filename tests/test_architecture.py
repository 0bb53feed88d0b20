"""The floors of the house: imports go down only, and rooms do not know each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINT = "from importlinter.cli import lint_imports_command as main; main()"


def test_imports_keep_the_contracts_of_pyproject():
    """In a process of its own: the import graph is cached by the working directory."""
    done = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_no_contract_has_an_exception():
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text()
