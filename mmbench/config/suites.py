"""Replace suites of OpenML in a configuration by their tasks."""

from mmbench.config.checks import check
from mmbench.config.faults import Fault
from mmbench.config.model import Config, DatasetEntry
from mmbench.datasets.fetch import NoAnswer, NotAvailable, Places
from mmbench.datasets.openml import find_suite
from mmbench.errors import UserError, converted


def with_tasks(config: Config, places: Places) -> tuple[Config, list[str], dict[str, str]]:
    """Return a configuration with one data set per task in place of each suite, a message for each
    suite with tasks that are left out, and the reason for each suite that cannot be downloaded.

    The other keys of the suite are keys of each task. Raises UserError if a suite has no task that
    can be used, if no data set is left, or if a task occurs twice.
    """
    entries: list[DatasetEntry] = []
    messages, absent = list[str](), dict[str, str]()
    for entry in config.datasets:
        if entry.openml_suite is None:
            entries.append(entry)
            continue
        source = str(entry.source)
        try:
            with converted(source, ValueError), converted(source, NoAnswer, to=NotAvailable):
                suite = find_suite(entry.openml_suite, places)
        except NotAvailable as error:
            absent[source] = str(error)
            continue
        for task in suite.tasks:
            entries.append(entry.model_copy(update={"openml_suite": None, "openml_task": task}))
        if suite.left_out:
            tasks = ", ".join(f"task {task} ({why})" for task, why in suite.left_out.items())
            messages.append(f"{entry.source}: left out: {tasks}")
        if not suite.tasks:
            raise UserError(messages[-1] if suite.left_out else f"{entry.source}: has no tasks")
    if not entries:
        raise UserError(next(iter(absent.values())))
    expanded = config.model_copy(update={"datasets": entries})
    with converted(config.name, Fault):
        check(expanded)
    if config.source is None:
        return expanded, messages, absent
    return expanded.with_source(with_tasks(config.source, places)[0]), messages, absent
