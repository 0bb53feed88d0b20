"""Write results of OpenML tasks as runs, folders that openml-python reads, and upload them.

A run is one machine on one task: ``description.xml`` (task, parameters, accuracy per split),
``flow.xml`` (machine and version), and ``predictions.arff``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from xml.parsers.expat import ExpatError

import numpy as np
from scipy.special import softmax

from mmbench.datasets.dataset import TASK
from mmbench.datasets.fetch import Places
from mmbench.datasets.openml import find_task, read_split_table
from mmbench.errors import UserError, converted, extra
from mmbench.jobs.disk import write_folder
from mmbench.jobs.planned import grouped, key_of
from mmbench.jobs.record import Record
from mmbench.results.frames import Arrays, Results
from mmbench.results.splits import class_scores

#: Namespace of OpenML's XML files.
NAMESPACE = "http://openml.org/openml"
#: Maximum size of the file with the splits of a task.
MOST_BYTES = 100 * 2**20


def write_runs(experiments: Sequence[Results], target: Path, places: Places) -> list[Path]:
    """Write a folder per experiment, task and machine into `target`, and return the folders."""
    folders = []
    for one in experiments:
        for (task_id, name), records in _runs(one).items():
            folder = target / one.name / f"task_{task_id}" / name
            files = _files(one, task_id, name, records, places)
            write_folder(folder, {file: text.encode() for file, text in files.items()})
            folders.append(folder)
    if not folders:
        raise UserError("--openml: the results contain no finished jobs of an OpenML task")
    return folders


def _runs(results: Results) -> dict[tuple[int, str], list[Record]]:
    """Return the finished records of each run, by task and name of the run."""
    found = []
    for record in results.records.values():
        kind, _, number = (record.job.dataset.path or "").partition(":")
        if kind == TASK and number.isdecimal() and record.done:
            cell = key_of(record.job)
            parts = [cell.machine, *map(str, filter(None, (cell.kernel, cell.degree, cell.size)))]
            found.append(((int(number), re.sub(r"[^\w+-]", "_", "_".join(parts))), record))
    return grouped(found)


def _files(
    results: Results, task_id: int, name: str, records: list[Record], places: Places
) -> dict[str, str]:
    where = f"{results.name}, task {task_id}, {name}"
    with converted(where, ValueError):
        table = read_split_table(find_task(task_id, places, MOST_BYTES).splits)
    tests = {
        np.sort(part["rowid"].to_numpy()).tobytes(): at
        for at, part in table[table["type"] == "TEST"].groupby(["repeat", "fold"])
    }
    rows: list[tuple[Any, ...]] = []
    accuracies = {}
    for record in records:
        arrays = results.arrays(record.key)
        if not arrays:
            raise UserError(f"{where}: the records contain no predictions")
        index = arrays["test_index"].astype(table["rowid"].dtype)
        if (at := tests.get(np.sort(index).tobytes())) is None:
            raise UserError(f"{where}: a test part differs from the splits of the task")
        if at in accuracies:
            raise UserError(f"{where}: two results for the same split; use two experiments")
        labels = (arrays[key].astype(str).tolist() for key in ("predicted", "y_test"))
        stated = _confidences(record, arrays)
        rows += [(*at, *row) for row in zip(index.tolist(), *labels, stated, strict=True)]
        accuracies[at] = record.metrics["accuracy_pct"] / 100
    if missing := len(tests) - len(accuracies):
        raise UserError(f"{where}: {missing} of {len(tests)} splits are missing; run them first")
    parameters = _parameters(records)
    return {
        "description.xml": _description(task_id, parameters, accuracies),
        "flow.xml": _flow(records[0], parameters),
        "predictions.arff": _arff(task_id, sorted(rows, key=lambda row: row[:3])),
    }


def _confidences(record: Record, arrays: Arrays) -> list[dict[str, float]]:
    """Return the confidence of each class for each test row.

    Confidences are probabilities, if the machine computes them; otherwise, the softmax of the class
    scores, which ranks the rows of two classes as the decision value does. A machine without scores
    has the confidence 1 for the predicted class, as openml-python writes it.
    """
    found = class_scores(record, arrays, "probabilities" not in arrays)
    if isinstance(found, str):
        return [{label: 1.0} for label in arrays["predicted"].astype(str).tolist()]
    classes, values = found
    if "probabilities" not in arrays:
        values = softmax(values, axis=1)
    return [dict(zip(classes.tolist(), row, strict=True)) for row in values.tolist()]


def _parameters(records: Sequence[Record]) -> dict[str, str]:
    """Return the parameters as JSON; a list per split for a parameter that differs."""
    ordered = sorted(records, key=lambda record: record.at)
    found = {}
    for name in ordered[0].parameters:
        values = [json.dumps(record.parameters.get(name), default=str) for record in ordered]
        found[name] = values[0] if len({*values}) == 1 else f"[{', '.join(values)}]"
    return found


def _description(
    task_id: int, parameters: Mapping[str, str], accuracies: Mapping[Any, float]
) -> str:
    run = _root("run")
    _add(run, "task_id", str(task_id))
    _add(run, "flow_id")  # empty: the flow is in flow.xml
    for name, value in parameters.items():
        _add(run, "parameter_setting", name=name, value=value)
    output = _add(run, "output_data")
    for (repeat, fold), accuracy in sorted(accuracies.items()):
        found = _add(output, "evaluation", name="predictive_accuracy", value=str(accuracy))
        found.attrib |= {"repeat": str(repeat), "fold": str(fold)}
    return ET.tostring(run, "unicode")


def _flow(record: Record, parameters: Mapping[str, str]) -> str:
    version = record.environment["mmbench"]
    libraries = record.environment.get("libraries", {})
    flow = _root("flow")
    _add(flow, "name", f"mmbench.{record.job.machine}")
    _add(flow, "external_version", f"mmbench=={version}")
    _add(flow, "description", f"{record.job.machine} of mmbench, with selected parameters")
    _add(flow, "language", "English")
    _add(flow, "dependencies", "\n".join(f"{name}=={n}" for name, n in libraries.items()))
    for name in parameters:
        _add(flow, "parameter", name=name, data_type="", default_value="", description="")
    return ET.tostring(flow, "unicode")


def _root(name: str) -> ET.Element:
    ET.register_namespace("oml", NAMESPACE)
    return ET.Element(f"{{{NAMESPACE}}}{name}")


def _add(parent: ET.Element, tag: str, text: str = "", /, **parts: str) -> ET.Element:
    """Add a child with a text, and with children whose texts are `parts`."""
    child = ET.SubElement(parent, f"{{{NAMESPACE}}}{tag}")
    child.text = text or None
    for name, part in parts.items():
        _add(child, name, part)
    return child


def _arff(task_id: int, rows: list[tuple[Any, ...]]) -> str:
    """Return the predictions; openml-python requires the column ``sample``, which is always 0."""
    classes = sorted({label for row in rows for label in (*row[3:5], *row[5])})
    nominal = f"{{{','.join(map(_quoted, classes))}}}"
    lines = [f"@RELATION openml_task_{task_id}_predictions", ""]
    lines += [f"@ATTRIBUTE {name} NUMERIC" for name in ("repeat", "fold", "sample", "row_id")]
    lines += [f"@ATTRIBUTE {name} {nominal}" for name in ("prediction", "correct")]
    lines += [f"@ATTRIBUTE {_quoted(f'confidence.{label}')} NUMERIC" for label in classes]
    lines += ["", "@DATA"]
    for repeat, fold, row, predicted, true, stated in rows:
        confidences = [repr(stated.get(label, 0.0)) for label in classes]
        place = [str(repeat), str(fold), "0", str(row)]
        lines.append(",".join([*place, _quoted(predicted), _quoted(true), *confidences]))
    return "\n".join([*lines, ""])


def _quoted(label: str) -> str:
    escaped = label.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# -- upload --------------------------------------------------------------------------------------


def publisher() -> Any:
    """Return the package openml. Raises UserError if it or the key of the user is missing."""
    with extra("openml", "--publish"):
        import openml
    if not openml.config.apikey:
        raise UserError(
            "--publish: the configuration of openml contains no key; `openml configure apikey` "
            "stores the key that your profile on OpenML shows"
        )
    return openml


def publish_runs(folders: Iterable[Path]) -> Iterator[str]:
    """Upload the runs in folders that `write_runs` has written, and yield the address of each."""
    openml = publisher()
    failures = (openml.exceptions.PyOpenMLError, OSError, ValueError, KeyError, ExpatError)
    for folder in folders:
        with converted(f"{folder}: OpenML", *failures):
            run = _on_server(openml, folder)
            run.publish()
        yield f"{folder}: {run.openml_url}"


def _on_server(openml: Any, folder: Path) -> Any:
    """Return a run whose flow is on the server.

    openml-python leaves out the parameters of a run that it reads from a folder, and writes the
    confidences in the order of the task's classes.
    """
    import arff

    run = openml.runs.OpenMLRun.from_filesystem(folder, expect_model=False)
    run.flow.publish()
    run.flow_id = run.flow.flow_id
    settings = ET.parse(folder / "description.xml").iterfind(".//{*}parameter_setting")
    run.parameter_settings = [
        {
            "oml:name": setting.findtext("{*}name"),
            "oml:value": setting.findtext("{*}value"),
            "oml:component": run.flow_id,
        }
        for setting in settings
    ]
    with (folder / "predictions.arff").open(encoding="utf-8") as file:
        names = [name for name, _ in arff.load(file)["attributes"]]
    order = [f"confidence.{label}" for label in openml.tasks.get_task(run.task_id).class_labels]
    first = len(names) - sum(name.startswith("confidence.") for name in names)
    run.data_content = [
        [*row[:first], *(row[names.index(name)] if name in names else 0.0 for name in order)]
        for row in run.data_content
    ]
    return run
