"""Sentences on the protocol of an experiment: train/test splits, parameter selection and
preprocessing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mmbench.jobs.job import Job
from mmbench.jobs.store import grouped

#: Description of an official test part. If a stored table contains this text, the results in the
#: table were measured on an official test part.
OFFICIAL = "the official test part"


def protocol(jobs: Sequence[Job], label: Callable[[str], str]) -> tuple[str, ...]:
    """Return sentences on the train/test splits, the parameter selection and the preprocessing of
    the jobs.

    The function `label` returns the name of a machine as printed in tables.
    """
    if not jobs:
        return ()
    chosen, lines = [job for job in jobs if job.grid], [f"Test: {_each(jobs, tested)}."]
    if taken := [job for job in jobs if job.use == job.column]:
        shared = (
            "All splits share one choice of parameters: the median over the selections on "
            f"{len(taken[0].parents)} training parts of another experiment, whose rows may be test "
            "rows here."
        )
        lines.append(shared if taken[0].shares else "Parameters as selected in another experiment.")
    elif chosen:
        lines.append(f"Parameter selection: {_each(chosen, selected)}.")
    foreign = grouped((job.kernel, label(job.column)) for job in jobs if not job.has_kernel)
    for kernel, names in foreign.items():
        where = f", in the rows of {kernel}" if len({job.kernel for job in jobs}) > 1 else ""
        lines.append(f"Classifiers of other packages{where}: {', '.join(dict.fromkeys(names))}.")
    calibrated = [job for job in jobs if job.calibrate]
    texts = (f"{label(j.column)}: {j.calibrate}, {j.calibration_folds} folds" for j in calibrated)
    if text := "; ".join(dict.fromkeys(texts)):
        lines.append(f"Probabilities, calibrated on each training part: {text}.")
    if steps := _each(jobs, preprocessed):
        lines.append(f"Preprocessing, fitted to each training part: {steps}.")
    return tuple(lines)


def _each(jobs: Iterable[Job], describe: Callable[[list[Job]], str]) -> str:
    """Apply the function `describe` to the jobs of each data set, and return all descriptions as
    one text.

    Data sets with the same description are listed together.
    """
    groups = grouped((job.dataset.name, job) for job in jobs)
    found = grouped((describe(group), name) for name, group in groups.items())
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{text or 'none'} ({', '.join(names)})" for text, names in found.items())


def tested(jobs: Sequence[Job]) -> str:
    """Return a description of the train/test splits of a data set."""
    first, data = jobs[0].split, jobs[0].dataset
    splits = {(job.split.repeat, job.split.fold) for job in jobs}
    n, repeats = len(splits), len({repeat for repeat, _ in splits})
    seeds = sorted({job.split.seed for job in jobs})
    seed = f"(seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})"
    times = f", {repeats} times" if repeats > 1 else ""
    argument, group = first.args[0] if first.args else 0, dict(data.options).get("groups")
    given = "that come with the data" if data.folds is None else "of a file of folds"
    text = {
        "official": OFFICIAL + (f"{times} with other inner folds and ties {seed}" if times else ""),
        "predefined": f"{n} splits {given}",
        "kfold": f"{argument:g}-fold cross-validation{times} {seed}",
        "holdout": f"{repeats} random partitions with {100 * argument:g} % of the rows {seed}",
        "leave_one_out": f"each {group or 'row'} left out once, {n} splits",
        "time_series": f"{n} successive test parts in time, each after its training rows",
    }[first.rule]
    if group is not None and first.rule != "leave_one_out":
        text += f", all rows of a {group} in one part"
    if isinstance(first.max_train, int):
        text += f", at most {first.max_train} training rows"
    elif first.max_train and first.max_train[0] == "per_class":
        text += f", {first.max_train[1]} training rows per class"
    return text


def selected(jobs: Sequence[Job]) -> str:
    """Return a description of the parameter selection for a data set."""
    select = jobs[0].select
    times = f", {select.repeats} times" if select.repeats > 1 else ""
    if jobs[0].validates_on_test:
        text = "the accuracy on the test part (a leak)"
    elif select.folds:
        text = f"{select.folds}-fold cross-validation on each training part{times}"
    elif select.split:
        text = f"validation on {100 * select.split:g} % of each training part{times}"
    else:
        text = "validation on the rows outside the training set"
    if select.metric != "accuracy":
        from mmbench.selection.metrics import METRICS

        label = METRICS[select.metric].label
        text += f", by {label if label.isupper() else label[0].lower() + label[1:]}"
    return text + (", for each pair of classes" if select.scope == "pair" else "")


def preprocessed(jobs: Sequence[Job]) -> str:
    """Return a description of the preprocessing steps for a data set, or an empty text."""
    steps = jobs[0].dataset.preprocess
    return ", ".join(name if value is None else f"{name} {_plain(value)}" for name, value in steps)


def _plain(value: Any) -> str:
    """Return the argument of a preprocessing step as text, without quotes or brackets."""
    if isinstance(value, tuple):
        return ", ".join(f"{name} {part}" for name, part in value)
    return value if isinstance(value, str) else f"{value:g}"


def grid_rows(jobs: Sequence[Job], label: Callable[[str], str]) -> list[list[str]]:
    """Return the rows for the block of parameter grids.

    Each row states the values of one parameter in the grids of one machine, over all data sets. If
    a machine reuses the selected parameters of another machine, a row names the other machine.
    """
    axes: dict[tuple[str, str], set] = {}
    for job in jobs:
        if job.use not in (None, job.column):
            name = "all others" if job.grid else "all"
            axes.setdefault((job.column, name), set()).add(f"as {label(job.use)}")
        for name, values in job.grid:
            axes.setdefault((job.column, name), set()).update(values)
    return [[label(column), name, _axis(values)] for (column, name), values in axes.items()]


def _axis(values: Iterable[object]) -> str:
    found: list[Any] = sorted(v for v in values if isinstance(v, int | float))
    words = sorted(str(v) for v in values if not isinstance(v, int | float))
    texts = [f"{found[0]:.3g} to {found[-1]:.3g} ({len(found)} values)"] if found[1:] else found
    return ", ".join(map(str, [*texts, *words]))
