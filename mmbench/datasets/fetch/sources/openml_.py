"""OpenML, through the ``openml`` package in a process of its own.

The package has no time limits, sets up its cache and log handlers when imported, and is configured
through module globals. A child process keeps all of that away from the caller and can be stopped.
The child only downloads (`openml_child`); its ARFF file, whose MD5 the package has compared with
the server's, is parsed here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.sources import SourceError, timeout
from mmbench.datasets.parsers import parse

SERVER = "MMBENCH_OPENML_SERVER"
DEFAULT_SERVER = "https://www.openml.org/api/v1/xml"


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Download a data set by its OpenML id and parse it."""
    from tqdm import tqdm

    with tqdm(
        total=None, desc=f"OpenML {source.id}", bar_format="{desc} {elapsed}", disable=not progress
    ):
        answer = _run_child(int(source.id or 0), folder)
    if "error" in answer:
        raise SourceError(f"OpenML data set {source.id}: {answer['error']}")
    parser = card.parser_of(source)
    options = {"target": answer["target"], **parser.options}
    return parse(parser.name, [Path(answer["arff"])], options)


def _run_child(data_id: int, folder: Path) -> dict[str, str]:
    """Run the download in a child; it alone sees the settings, which are environment variables."""
    settings = {
        "OPENML_CACHE_DIR": str(folder.resolve()),
        # Parquet files come without a check sum, and through a second protocol.
        "OPENML_SKIP_PARQUET": "true",
    }
    command = [sys.executable, "-m", "mmbench.datasets.fetch.sources.openml_child", str(data_id)]
    command += [os.environ.get(SERVER, DEFAULT_SERVER), str(timeout()), str(folder.resolve())]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    lines = done.stdout.strip().splitlines()
    try:
        return dict(json.loads(lines[-1]))
    except (IndexError, ValueError):
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"error": f"the openml package failed: {reason}"}
