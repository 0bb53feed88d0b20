"""Upload runs to OpenML by the package openml, with the key and the server of its configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from xml.parsers.expat import ExpatError

from mmbench.errors import UserError, converted, extra


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
            run = _run(openml, folder)
            run.publish()
        yield f"{folder}: {run.openml_url}"


def _run(openml: Any, folder: Path) -> Any:
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
