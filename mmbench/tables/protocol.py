"""Sentences on a whole run: train/test splits, parameter selection, preprocessing, computers and
code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from mmbench.jobs.planned import grouped
from mmbench.results.cells import Row
from mmbench.results.frames import Results

SMOKE = "Smoke version: fewer splits, rows and grid points; not compared with the paper."
LEAK = "LEAK: parameters were selected by the accuracy on the test part, which is too high."


def rows_with_protocol(results: Results) -> list[Row]:
    """Return the rows of the frame ``splits`` that state their split rule."""
    return [row for row in chain.from_iterable(results.by_cell.values()) if row.test]


def protocol(results: Results) -> tuple[str, ...]:
    """Return sentences on the train/test splits, the parameter selection and the preprocessing."""
    rows, label = rows_with_protocol(results), results.label
    if not rows:
        return ()
    chosen, lines = [row for row in rows if row.grid], [f"Test: {_each(rows, tested)}."]
    if taken := [row for row in rows if "parents" in (row.selection or {})]:
        shared = (
            "All splits share one choice of parameters: the median over the selections on "
            f"{taken[0].selection['parents']} training parts of another experiment, whose rows may "
            "be test rows here."
        )
        same = "Parameters as selected in another experiment."
        lines.append(shared if taken[0].selection["median"] else same)
    elif chosen:
        lines.append(f"Parameter selection: {_each(chosen, selected)}.")
    kernels = {row.kernel for row in rows}
    others = grouped((r.kernel, label(r.machine)) for r in rows if r.machine in results.foreign)
    for kernel, names in others.items():
        where = f", in the rows of {kernel}" if len(kernels) > 1 else ""
        lines.append(f"Classifiers of other packages{where}: {', '.join(dict.fromkeys(names))}.")
    texts = (f"{label(row.machine)}: {row.calibration}" for row in rows if row.calibration)
    if text := "; ".join(dict.fromkeys(texts)):
        lines.append(f"Probabilities, calibrated on each training part: {text}.")
    if steps := _each(rows, lambda own: preprocessed(own[0].preprocess or ())):
        lines.append(f"Preprocessing, fitted to each training part: {steps}.")
    return tuple(lines)


def _each(rows: Iterable[Row], describe: Callable[[list[Row]], str]) -> str:
    """Apply the function `describe` to the rows of each data set, and return all descriptions as
    one text.

    Data sets with the same description are listed together.
    """
    groups = grouped((row.dataset, row) for row in rows)
    found = grouped((describe(group), name) for name, group in groups.items())
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{text or 'none'} ({', '.join(names)})" for text, names in found.items())


def tested(rows: Sequence[Row]) -> str:
    """Return a description of the train/test splits of a data set."""
    test = rows[0].test
    splits = {(row.repeat, row.fold) for row in rows}
    n, repeats = len(splits), len({repeat for repeat, _ in splits})
    seeds = sorted({row.seed for row in rows})
    seed = f"(seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})"
    times = f", {repeats} times" if repeats > 1 else ""
    argument, group, most = test["argument"], test["groups"], test["max_train"]
    given = "of a file of folds" if test["folds_file"] else "that come with the data"
    official = "the official test part"
    text = {
        "official": official + (f"{times} with other inner folds and ties {seed}" if times else ""),
        "predefined": f"{n} splits {given}",
        "kfold": f"{argument:g}-fold cross-validation{times} {seed}",
        "holdout": f"{repeats} random partitions with {100 * argument:g} % of the rows {seed}",
        "leave_one_out": f"each {group or 'row'} left out once, {n} splits",
        "time_series": f"{n} successive test parts in time, each after its training rows",
    }[test["rule"]]
    if group is not None and test["rule"] != "leave_one_out":
        text += f", all rows of a {group} in one part"
    if isinstance(most, int):
        text += f", at most {most} training rows"
    elif most and most[0] == "per_class":
        text += f", {most[1]} training rows per class"
    return text


def selected(rows: Sequence[Row]) -> str:
    """Return a description of the parameter selection for a data set."""
    select = rows[0].selection
    times = f", {select['repeats']} times" if select["repeats"] > 1 else ""
    if select["scope"] == "test":
        text = "the accuracy on the test part (a leak)"
    elif select["folds"]:
        text = f"{select['folds']}-fold cross-validation on each training part{times}"
    elif select["split"]:
        text = f"validation on {100 * select['split']:g} % of each training part{times}"
    else:
        text = "validation on the rows outside the training set"
    if select["metric"] != "accuracy":
        from mmbench.selection.metrics import METRICS

        label = METRICS[select["metric"]].label
        text += f", by {label if label.isupper() else label[0].lower() + label[1:]}"
    return text + (", for each pair of classes" if select["scope"] == "pair" else "")


def preprocessed(steps: Iterable[Sequence[Any]]) -> str:
    """Return a description of preprocessing steps, or an empty text."""
    return ", ".join(name if value is None else f"{name} {_plain(value)}" for name, value in steps)


def _plain(value: Any) -> str:
    """Return the argument of a preprocessing step as text, without quotes or brackets."""
    if isinstance(value, tuple | list):
        return ", ".join(f"{name} {part}" for name, part in value)
    return value if isinstance(value, str) else f"{value:g}"


def grid_rows(results: Results) -> list[list[Any]]:
    """Return the rows for the block of parameter grids.

    Each row states the values of one parameter in the grids of one machine, over all data sets. If
    a machine reuses the selected parameters of another machine, a row names the other machine.
    """
    axes = dict[str, dict[str, dict[Any, None]]]()
    for row in rows_with_protocol(results):
        own = axes.setdefault(row.machine, {})
        if row.uses not in ("", row.machine):
            name = "all others" if row.grid else "all"
            own.setdefault(name, {})[f"as {results.label(row.uses)}"] = None
        for name, values in (row.grid or {}).items():
            given = row.parameters if isinstance(row.parameters, dict) else {}
            if name == "gamma" and given.get("gamma_scaling") == "variance":
                name = "gamma (1 / (columns × variance))"
            own.setdefault(name, {}).update(dict.fromkeys(map(_hashable, values)))
    return [
        [results.label(machine), name, _axis(values)]
        for machine, own in axes.items()
        for name, values in own.items()
    ]


def _hashable(value: Any) -> Any:
    return str(value) if isinstance(value, list | dict) else value


def _axis(values: Iterable[object]) -> str:
    found: list[Any] = sorted(v for v in values if isinstance(v, int | float))
    words = sorted(str(v) for v in values if not isinstance(v, int | float))
    texts = [f"{found[0]:.3g} to {found[-1]:.3g} ({len(found)} values)"] if found[1:] else found
    return ", ".join(map(str, [*texts, *words]))


def remarks(results: Results) -> list[str]:
    """Return sentences on the whole run: leaks, damaged records, computers, and code."""
    rows, facts = rows_with_protocol(results), results.facts
    leak = any((row.selection or {}).get("scope") == "test" for row in rows)
    computers = [
        f"Run with mmbench {mmbench}, Python {python}, {computer}; pairs of classes trained at a "
        f"time: {' or '.join(map(str, pairs))}."
        for mmbench, python, computer, pairs in facts["computers"]
    ]
    return [
        *[LEAK][:leak],
        *[SMOKE][: results.plan.smoke],
        *results.remarks,
        *computers,
        *_code(facts),
    ]


def _code(facts: Any) -> list[str]:
    """Return sentences on the versions of the machines' code, with the number of records that were
    not made by the code of this table.
    """
    texts = (
        f"{', '.join(machines)} {version}{f', {text}' if text else ''}"
        for version, text, machines in facts["code"]
    )
    known, lacking = facts["with_code"], facts["records"] - facts["with_code"]
    lines = [f"Code of the machines (version, fingerprint of the sources): {'; '.join(texts)}."]
    if (other := facts["by_other_code"]) is not None:
        lines.append(f"Records made by other code than this table: {other} of {known}.")
    lines = lines if known else []
    return [*lines, *[f"Records without a fingerprint of the code: {lacking}."][: bool(lacking)]]
