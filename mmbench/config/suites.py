"""Replace suites of OpenML in a configuration by their tasks."""

from mmbench.config.checks import check
from mmbench.config.faults import Fault
from mmbench.config.model import Config, DatasetEntry
from mmbench.datasets.fetch import Places
from mmbench.datasets.openml import find_suite
from mmbench.errors import UserError, converted


def with_tasks(config: Config, places: Places) -> tuple[Config, list[str]]:
    """Return a configuration with one data set per task in place of each suite, and a message for
    each suite with tasks that are left out.

    The other keys of the suite are keys of each task. Raises UserError if the tasks of a suite
    cannot be found, if no task is left, or if a task occurs twice.
    """
    entries: list[DatasetEntry] = []
    messages = []
    for entry in config.datasets:
        if entry.openml_suite is None:
            entries.append(entry)
            continue
        with converted(str(entry.source), ValueError):
            suite = find_suite(entry.openml_suite, places)
        for task in suite.tasks:
            entries.append(entry.model_copy(update={"openml_suite": None, "openml_task": task}))
        if suite.left_out:
            tasks = ", ".join(f"task {task} ({why})" for task, why in suite.left_out.items())
            messages.append(f"{entry.source}: left out: {tasks}")
        if not suite.tasks:
            raise UserError(messages[-1] if suite.left_out else f"{entry.source}: has no tasks")
    expanded = config.model_copy(update={"datasets": entries})
    with converted(config.name, Fault):
        check(expanded)
    if config.source is None:
        return expanded, messages
    return expanded.with_source(with_tasks(config.source, places)[0]), messages
