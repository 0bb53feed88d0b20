"""Data sets, tasks and suites of OpenML, searched in the store, in a mirror and on the server.

openml/NUMBER.arff or .parquet   data set; default target and non-features in NUMBER.json
openml/task_NUMBER.arff          splits of a task; data set and target in task_NUMBER.json
openml/suite_NUMBER.json         tasks of a suite
"""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mmbench.datasets.dataset import Rows
from mmbench.datasets.fetch import Places
from mmbench.datasets.fetch.sources import (
    MOST_FEATURES,
    NO_DESCRIPTION,
    OPENML,
    NoAnswer,
    OpenMLAnswer,
    SourceError,
    TableFile,
    download,
    download_table,
    of_openml,
)
from mmbench.errors import converted

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "openml"
#: Beginning of a Parquet file.
PARQUET = b"PAR1"
#: OpenML's name for a task with class labels.
CLASSIFICATION = "Supervised Classification"
OFFLINE = (
    "not in the store or the mirror, and the network is switched off (--dry-run); name a folder "
    "with a copy by --mirror FOLDER, or run without --dry-run"
)


class OpenMLTask(NamedTuple):
    """A classification task."""

    data_id: int
    target: str
    #: ARFF file with the splits, which `read_splits` reads.
    splits: Path


class Suite(NamedTuple):
    """Tasks of a suite, by their numbers."""

    #: Classification tasks without text columns.
    tasks: tuple[int, ...]
    #: All other tasks, mapped to the reasons.
    left_out: dict[int, str]


def find_table(data_id: int, places: Places, most: int) -> TableFile:
    """Return the file of an OpenML data set; a missing file of at most `most` bytes is downloaded.

    Raises SourceError if the download fails or the network is switched off, and ValueError if files
    of the store or mirror are damaged.
    """
    old = ""
    for suffix in (".arff", ".parquet"):
        for path, facts in _stored(f"{data_id}{suffix}", places):
            match facts:
                case {"target": str(target), "ignored": [*ignored]}:
                    return TableFile(path, target, tuple(map(str, ignored)))
            old = f"{path.with_suffix('.json')} is of an older version and does not list the "
            old += "columns to exclude; "
    if not places.allow_network:
        raise NoAnswer(f"{old}{OFFLINE}")
    with places.scratch() as scratch:
        table = download_table(data_id, scratch, places.progress, most)
        with table.path.open("rb") as file:
            suffix = ".parquet" if file.read(len(PARQUET)) == PARQUET else ".arff"
        facts = {"target": table.target, "ignored": table.ignored}
        path = _admit(table.path, f"{data_id}{suffix}", facts, places)
    return table._replace(path=path)


def find_task(task_id: int, places: Places, most: int) -> OpenMLTask:
    """Return an OpenML task; missing splits of at most `most` bytes are downloaded.

    Raises SourceError if the task is no classification task; for other errors, see `find_table`.
    """
    name = f"task_{task_id}.arff"
    for path, facts in _stored(name, places):
        match facts:
            case {"data": int(data_id), "target": str(target)}:
                return OpenMLTask(data_id, target, path)
        raise ValueError(f"{path.with_suffix('.json')}: states no data set and target")
    if not places.allow_network:
        raise NoAnswer(OFFLINE)
    with places.scratch() as scratch, of_openml(f"task {task_id}"):
        answer = OpenMLAnswer(f"task/{task_id}", scratch)
        if (kind := answer.text("task_type")) != CLASSIFICATION:
            raise SourceError(f"is a task of {kind}, not of {CLASSIFICATION}")
        with converted(NO_DESCRIPTION, ValueError, to=SourceError):
            data_id = int(answer.text("data_set_id"))
        target = answer.text("target_feature")
        url, path = answer.text("data_splits_url"), scratch / "splits"
        download(url, path, places.progress, most)
        with converted(url, ValueError, to=SourceError):
            read_splits(path)
        path = _admit(path, name, {"data": data_id, "target": target}, places)
    return OpenMLTask(data_id, target, path)


def find_suite(suite_id: int, places: Places) -> Suite:
    """Return an OpenML suite; for errors, see `find_table`."""
    from tqdm import tqdm

    name = f"suite_{suite_id}.json"
    for path, facts in _stored(name, places):
        match facts:
            case {"tasks": [*tasks], "left_out": dict(others)}:
                return Suite(tuple(map(int, tasks)), {int(n): str(others[n]) for n in others})
        raise ValueError(f"{path}: states no tasks")
    if not places.allow_network:
        raise NoAnswer(OFFLINE)
    tasks, left_out = [], {}
    with places.scratch() as scratch, of_openml(f"suite {suite_id}"):
        numbers = OpenMLAnswer(f"study/{suite_id}", scratch).texts("task_id")
        for task in tqdm(numbers, f"suite {suite_id}", disable=not places.progress):
            if reason := _misfit(task, scratch):
                left_out[int(task)] = reason
            else:
                tasks.append(int(task))
        (file := scratch / name).write_text(json.dumps({"tasks": tasks, "left_out": left_out}))
        places.admit(file, Path(FOLDER, name))
    return Suite(tuple(tasks), left_out)


def _misfit(task_id: str, folder: Path) -> str | None:
    """Return the reason why a task cannot be used, or None."""
    with of_openml(f"task {task_id}"):
        answer = OpenMLAnswer(f"task/{task_id}", folder)
        if (kind := answer.text("task_type")) != CLASSIFICATION:
            return kind
        request = f"data/features/{answer.text('data_set_id')}"
        for feature in OpenMLAnswer(request, folder, MOST_FEATURES).root:
            stated = {part.tag.removeprefix(OPENML): part.text for part in feature}
            unused = "true" in (stated.get("is_ignore"), stated.get("is_row_identifier"))
            if stated.get("data_type") == "string" and not unused:
                return f"text in column {stated.get('name')!r}"
    return None


def read_splits(path: Path) -> list[Rows]:
    """Return the splits in a file of an OpenML task, sorted by repeat and fold.

    Row numbers refer to the data set's file and count from 0. Raises ValueError if the file has
    another format.
    """
    splits = []
    for _, part in read_split_table(path).groupby(["repeat", "fold"]):
        rows = part["rowid"].to_numpy(np.intp)
        train, test = (np.sort(rows[part["type"] == word]) for word in ("TRAIN", "TEST"))
        if len(both := np.intersect1d(train, test)):
            raise ValueError(f"row {both[0]} is both a training row and a test row of a split")
        splits.append((train, test))
    return splits


def read_split_table(path: Path) -> "pd.DataFrame":
    """Return a file of splits as a frame with the columns type, rowid, repeat and fold."""
    import pandas as pd

    # the general reader of ARFF files takes four seconds for a million lines
    head, *body = re.split("@data.*", path.read_text("utf-8"), maxsplit=1, flags=re.I)
    names = re.findall(r"@attribute\s+(\w+)", head, re.I)
    if not {"type", "rowid", "repeat", "fold"} <= {*names}:
        raise ValueError("not a file of splits")
    frame = pd.read_csv(io.StringIO("".join(body)), names=names)
    if frame.empty or frame["rowid"].dtype.kind != "i" or frame["rowid"].min() < 0:
        raise ValueError("the splits have no row numbers")
    if frame.isna().any(axis=None) or not frame["type"].isin(["TRAIN", "TEST"]).all():
        raise ValueError("a line of the splits is not complete")
    return frame


def _stored(name: str, places: Places) -> Iterator[tuple[Path, Any]]:
    """Yield the paths of a file in the store and in the mirror folder, each with the content of the
    JSON file beside it.
    """
    for folder in filter(None, (places.store, places.mirror_folder)):
        path = folder / FOLDER / name
        facts = path.with_suffix(".json")
        if path.is_file() and facts.is_file():
            with converted(str(facts), ValueError, to=ValueError):
                stated = json.loads(facts.read_text("utf-8"))
            yield path, stated


def _admit(file: Path, name: str, facts: dict[str, Any], places: Places) -> Path:
    """Move a file and a JSON file with `facts` into the store, and return the path of the file."""
    (beside := file.with_suffix(".json")).write_text(json.dumps(facts), "utf-8")
    path = places.admit(file, Path(FOLDER, name))
    places.admit(beside, Path(FOLDER, name).with_suffix(".json"))
    return path
