"""An experiment on a machine that has no data: fetched from the addresses in the cards."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from helpers.data_server import DataServer, files_in
from typer.testing import CliRunner

from mmbench.cli.app import app
from mmbench.datasets import card_names, load_card

RAW = "https://raw.githubusercontent.com"


@pytest.fixture
def github(server: DataServer, mirror: Path, monkeypatch: pytest.MonkeyPatch) -> DataServer:
    """A server that answers the addresses of the F-SVM code's files in place of GitHub."""
    for name in filter(lambda name: name.startswith("fsvm_"), card_names()):
        (file,) = load_card(name).files
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
