"""A file in svmlight's format that is too large without sparsity stays sparse, in a run too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from mmbench.cli.app import app
from mmbench.datasets.dataset import DatasetRef
from mmbench.datasets.load import load_dataset
from mmbench.errors import UserError
from mmbench.reader import formats

CONFIG = """
name: wide
datasets: [{{path: {path}}}]
preprocess: {preprocess}
kernel: linear
protocol: {{test: {{holdout: 0.3}}}}
machines:
  svm: {{params: {{C: 10}}}}
  klda: {{params: {{eta: 0.1}}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """More cells than are made dense, few numbers."""
    random = np.random.default_rng(0)
    n, d = 1200, 1 + formats.MOST_CELLS // 1200
    y = np.where(np.arange(n) % 3 == 0, 1, -1)
    lines = [f"1 1:1 {d}:1"]
    for sign in y[1:]:
        columns = np.unique(random.integers(40, size=20)) + (0 if sign > 0 else 20)
        lines.append(f"{sign} " + " ".join(f"{k + 1}:{random.uniform():.3f}" for k in columns))
    (tmp_path / "wide.svm").write_text("\n".join(lines))
    return tmp_path / "wide.svm"


def test_it_is_read_sparse(file: Path):
    data = load_dataset(DatasetRef("wide", str(file)), store=file.parent)
    assert sparse.issparse(data.X)
    assert data.X.shape[0] == len(data.y) == 1200
    assert set(data.classes) == {-1, 1}


@pytest.mark.parametrize("option", [("missing", ("-999",)), ("drop", (1,)), ("index", 1)])
def test_keys_of_columns_are_refused_for_sparse_rows(file: Path, option: tuple):
    with pytest.raises(UserError, match="a sparse table has neither named columns nor"):
        load_dataset(DatasetRef("wide", str(file), options=(option,)), store=file.parent)


def test_keys_of_other_formats_are_refused_for_sparse_rows(file: Path):
    with pytest.raises(UserError, match="header has no effect on this file format"):
        load_dataset(DatasetRef("wide", str(file), options=(("header", False),)), store=file.parent)


@pytest.mark.parametrize("step", ["standard", "minmax"])
def test_steps_that_would_fill_zeros_are_refused(file: Path, step: str):
    with pytest.raises(UserError, match="preprocess must be none or unit_norm"):
        load_dataset(DatasetRef("wide", str(file), preprocess=((step, None),)), store=file.parent)


def test_a_file_is_sparse_if_its_dense_table_would_exceed_max_megabytes(tmp_path: Path):
    path = tmp_path / "my.svm"
    rows = [f"{k % 2} {k % 9 + 1}:1 300:{k + 1}" for k in range(600)]
    path.write_text("\n".join(rows))

    def load(megabytes: int, *steps: str):
        steps, options = tuple((step, None) for step in steps), (("max_megabytes", megabytes),)
        ref = DatasetRef("my", str(path), preprocess=steps, options=options)
        return load_dataset(ref, store=tmp_path).X

    assert sparse.issparse(load(1))
    assert np.array_equal(load(1).toarray(), load(2))
    with pytest.raises(UserError, match=r"must be none or unit_norm .*, write max_megabytes: 2 "):
        load(1, "standard")
    assert load(2, "standard").shape == (600, 300)


def test_a_file_with_more_columns_than_max_columns_is_sparse(tmp_path: Path):
    path = tmp_path / "my.svm"
    path.write_text("1 1:2 3:1\n0 2:1\n")
    refs = [DatasetRef("my", str(path), options=(("max_columns", most),)) for most in (3, 4)]
    wide, narrow = (load_dataset(ref, store=tmp_path).X for ref in refs)
    assert sparse.issparse(wide)
    assert np.array_equal(wide.toarray(), narrow)
    ref = DatasetRef("my", str(path), preprocess=(("standard", None),), options=refs[0].options)
    with pytest.raises(UserError, match="to read a dense table, write max_columns: 4 "):
        load_dataset(ref, store=tmp_path)


@pytest.mark.usefixtures("one_process")
def test_machines_that_need_dense_rows_are_named_before_a_job_runs(file: Path):
    config, results = file.parent / "wide.yaml", file.parent / "results"
    config.write_text(CONFIG.format(path=file, preprocess="unit_norm"))
    command = ["run", str(config), "--results", str(results)]
    ran = CliRunner().invoke(app, command)
    assert ran.exit_code == 2
    line = "mmbench: wide: is sparse, but dense rows are needed by klda; to run only the others"
    assert ran.stderr == f"{line}, --only machine=svm\n"
    assert not results.exists()
    ran = CliRunner().invoke(app, [*command, "--only", "machine=svm"])
    assert ran.exit_code == 0, ran.stderr
    assert "1 jobs done, 0 done before, 0 failed" in ran.stderr
