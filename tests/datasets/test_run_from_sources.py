"""An experiment on a machine that has no data: fetched from the addresses in the cards."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import requests
import yaml
from helpers.data_server import DataServer, files_in
from typer.testing import CliRunner

from mmbench.cli.app import app
from mmbench.datasets.card import load_card
from mmbench.datasets.card_files import card_names

RAW = "https://raw.githubusercontent.com"


@pytest.fixture
def github(server: DataServer, mirror: Path, monkeypatch: pytest.MonkeyPatch) -> DataServer:
    """A server that answers the addresses of the F-SVM code's files in place of GitHub."""
    for name in filter(lambda name: name.startswith("fsvm_"), card_names()):
        (file,) = [file for source in load_card(name).sources for file in source.files]
        (url,) = file.urls
        server.serve(url.removeprefix(RAW), (mirror / file.path).read_bytes())
    ask = requests.get

    def redirected(url: str, **options: object) -> requests.Response:
        assert url.startswith(RAW)
        return ask(url.replace(RAW, server.url), **options)

    monkeypatch.setattr(requests, "get", redirected)
    monkeypatch.delenv("MMBENCH_MIRROR", raising=False)
    return server


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize(
    "only", [["--only", "dataset=fsvm_vote"], pytest.param([], marks=pytest.mark.slow)]
)
def test_fsvm_release_runs_without_any_data(
    github: DataServer, tmp_path: Path, only: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MMBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("MMBENCH_TIMEOUT", "60")
    arguments = ["run", "fsvm_release", "--smoke", "--results", str(tmp_path / "results"), *only]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    stored = files_in(tmp_path / "data")
    wanted = ["vote"] if only else [n[5:] for n in card_names() if n.startswith("fsvm_")]
    assert stored == [f"fsvm-release-mat/{name}.mat" for name in wanted]


ROWS = "".join(f"{i},{i % 7 / 4},{'red' if i % 3 else 'blue'}\n" for i in range(60)).encode()
EXPERIMENT = """\
name: two
datasets: [down, up]
preprocess: minmax
protocol: {test: {kfold: 2}}
machines:
  svm: {grid: {C: [1, 10]}}
  rmm: {use: svm}
select: {folds: 2}
kernel: linear
"""


@pytest.fixture
def two(server: DataServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment on two data sets, of which the server delivers "up" and not "down"."""
    for name in ("up", "down"):
        url = server.serve(f"/{name}.data", ROWS) if name == "up" else f"{server.url}/down.data"
        sha256 = hashlib.sha256(ROWS).hexdigest()
        files = [{"path": f"{name}/rows.data", "sha256": sha256, "urls": [url]}]
        card = {
            "name": name,
            "title": "Rows",
            "licence": "none",
            "citation": "none",
            "parser": {"name": "delimited", "fields": 3},
            "expect": {"shape": [60, 2], "n_classes": 2, "classes": {"red": 40, "blue": 20}},
            "sources": [{"kind": "files", "files": files}],
        }
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(card))
    load_card.cache_clear()
    monkeypatch.setenv("MMBENCH_CARDS", str(tmp_path))
    monkeypatch.setenv("MMBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("MMBENCH_MIRROR", raising=False)
    path = tmp_path / "experiment" / "two.yaml"
    path.parent.mkdir()
    path.write_text(EXPERIMENT)
    return path


def run(path: Path, *options: str):
    return CliRunner().invoke(app, ["run", str(path), "--results", str(path.parent), *options])


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("fault", ["404", "silent", "half"])
def test_jobs_of_other_data_run_while_a_server_is_down(server: DataServer, two: Path, fault: str):
    if fault == "silent":
        server.hang("/down.data")
    if fault == "half":
        server.truncated("/down.data", ROWS)
    first = run(two)
    assert first.exit_code == 1, first.output
    assert first.stderr.count("failed: data set 'down' cannot be found or downloaded") == 4
    assert "two: 4 jobs done, 0 done before, 4 failed, 0 left" in first.stderr
    assert server.asked.count("/down.data") <= 2  # for the data and for their hash, not per job
    table = CliRunner().invoke(app, ["table", str(two.parent / "two"), "--format", "csv"])
    assert "failed,\"0 of 2 splits done, 2 failed (data set 'down' cannot be" in table.stdout
    server.serve("/down.data", ROWS)
    again = run(two)
    assert again.exit_code == 0, again.output
    assert "two: 4 jobs done, 4 done before, 0 failed, 0 left" in again.stderr


@pytest.mark.usefixtures("one_process")
def test_data_with_another_hash_end_the_run_before_its_first_job(server: DataServer, two: Path):
    server.serve("/down.data", ROWS.replace(b"red", b"rot"))
    outcome = run(two)
    assert outcome.exit_code == 2
    (line,) = outcome.stderr.splitlines()
    assert "wrong SHA-256" in line
    assert not (two.parent / "two").exists()


@pytest.mark.usefixtures("one_process")
def test_a_run_without_any_data_ends_before_its_first_job(two: Path):
    outcome = run(two, "--only", "dataset=down")
    assert outcome.exit_code == 2
    (line,) = outcome.stderr.splitlines()
    assert "data set 'down' cannot be found or downloaded" in line
    assert not (two.parent / "two").exists()


@pytest.mark.usefixtures("one_process")
def test_a_table_of_openml_waits_for_its_server_too(server: DataServer, two: Path):
    path = two.with_name("openml.yaml")
    path.write_text(EXPERIMENT.replace("down, up", "up, {openml: 7, name: seven}"))
    outcome = run(path)
    assert outcome.exit_code == 1, outcome.output
    assert "4 jobs done, 0 done before, 4 failed, 0 left" in outcome.stderr
    arff = b"@relation set\n@attribute a real\n@attribute b real\n@attribute class {red, blue}\n"
    server.openml(7, arff + b"@data\n" + ROWS)
    outcome = run(path)
    assert outcome.exit_code == 0, outcome.output
    assert "4 jobs done, 4 done before, 0 failed, 0 left" in outcome.stderr
