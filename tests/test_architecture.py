"""Imports go in one direction only, and names have one meaning."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter, defaultdict
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


def test_no_two_modules_share_a_name():
    names = Counter(path.stem for path in (ROOT / "mmbench").rglob("*.py"))
    shared = {name for name, count in names.items() if count > 1}
    # the module `rmm` of the layouts makes the tables of the RMM paper
    assert shared == {"__init__", "rmm"}


def test_no_two_classes_and_no_dict_and_another_constant_share_a_name():
    classes, constants, dicts = defaultdict(set), defaultdict(set), set()
    for path in sorted((ROOT / "mmbench").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].add(path)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name):
                    constants[target.id].add(path)
                    dicts |= (
                        {target.id} if isinstance(node.value, ast.Dict | ast.DictComp) else set()
                    )
    shared = {name for name, paths in classes.items() if len(paths) > 1}
    assert shared == set()
    # the statuses of Clarabel and of HiGHS have one meaning
    assert {name for name in dicts if len(constants[name]) > 1} == {"STATUS"}


def test_property_tests_state_their_examples():
    """Hypothesis draws none by default: a test without stated examples would run nothing."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                names = {ast.unparse(each).split("(")[0] for each in node.decorator_list}
                assert "given" not in names or "examples" in names, f"{path}: {node.name}"
