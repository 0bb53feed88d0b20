"""Table 1 of the RMM paper: errors on digits, one column per degree; McNemar's test of RMM and SVM.

The paper reports single runs. If an experiment repeats the selection with other seeds, the run with
the first seed is shown as the single run, and the mean over seeds below. Further blocks show the
expected errors under random tie-breaking, the numbers of test digits that only RMM or only SVM
classifies correctly, and CPU seconds.
"""

from collections.abc import Callable
from itertools import product

from mmbench.jobs.store import Key
from mmbench.tables.blocks import FIRST, total
from mmbench.tables.compose import STANDARD_DEVIATION, compose
from mmbench.tables.frame import Row
from mmbench.tables.model import (
    NOTHING,
    Column,
    Grid,
    Table,
    measured_text,
    numbers,
    once,
    published_text,
    seconds_text,
    words,
)
from mmbench.tables.sheet import Sheet
from mmbench.tables.statistics import mcnemar_p, wins_and_losses

PUBLISHED = "rmm_table1"
MACHINES = ("svm", "sigma_svm", "klda", "rmm")
METRIC = "errors_count"
#: Captions.
EXPECTED = "Errors expected under random tie-breaking, mean over seeds"
SECONDS = "CPU seconds of selection and training of all pairs, mean over seeds"


def layout(sheet: Sheet) -> Table:
    """Return errors with one column per degree and RBF last, McNemar's test, and CPU seconds."""
    sheet.arrange(MACHINES)

    def expected(key: Key) -> str:
        value = sheet.value(key, "errors_expected")
        return NOTHING if value is None else f"{value:.1f}"

    def seconds(key: Key) -> str:
        return seconds_text(total(sheet, key, ("selection", "training")))

    blocks = [
        _errors(sheet),
        _grid(sheet, expected, EXPECTED),
        _mcnemar(sheet),
        _grid(sheet, seconds, SECONDS),
    ]
    title = "Classification errors on digits (RMM paper, table 1)"
    return compose(sheet, title, blocks, metric=METRIC, spread=STANDARD_DEVIATION)


def _errors(sheet: Sheet) -> Grid:
    """Return the rows of each machine: measured, or single run and mean; and published."""
    rows = []
    for dataset, machine in product(sheet.datasets, sheet.machines):
        keys = _keys(sheet, dataset, machine)
        found = [sheet.row(key, METRIC) for key in keys]
        several, lines = any(row.sd is not None for row in found), {}
        if several:
            hits = (sheet.hits(key, FIRST) for key in keys)
            lines["single run"] = [NOTHING if h is None else str((~h).sum()) for h in hits]
        name = sheet.head(_place(dataset), kernel=False)
        texts = [sheet.marked(_mean(row), row, kernel=False) for row in found]
        lines["mean" if several else "measured"] = texts
        published = [published_text(row) for row in found]
        if set(published) != {NOTHING}:  # on the larger sets, the paper omits some machines
            lines["published"] = published
        heads = [name, sheet.label(machine)]
        rows += [
            [*heads, head, *texts]
            for head, texts in lines.items()
            if any(row.metric for row in found)
        ]
    return Grid(_columns(sheet, "machine", ""), once(rows), "Errors on the test digits")


def _mean(row: Row) -> str:
    return measured_text(row, None if row.sd is None else 1, sd=True)


def _mcnemar(sheet: Sheet) -> Grid:
    """Return McNemar's test of RMM and SVM in the single run, per data set and kernel."""

    def text(key: Key) -> str:
        ours, theirs = (sheet.hits(key._replace(machine=m), FIRST) for m in ("rmm", "svm"))
        if ours is None or theirs is None:
            return NOTHING
        wins, losses = wins_and_losses(ours, theirs)
        return f"{wins} : {losses} ({mcnemar_p(wins, losses):.2g})"

    datasets = sheet.datasets if {"rmm", "svm"} <= set(sheet.machines) else ()
    keys = {sheet.name(_place(name), kernel=False): _keys(sheet, name, "") for name in datasets}
    rows = [[name, *map(text, own)] for name, own in keys.items()]
    caption = (
        "Single run: digits that only the RMM : only the SVM classifies correctly (p-value of "
        "McNemar's exact test)"
    )
    return Grid(_columns(sheet), rows, caption)


def _grid(sheet: Sheet, show: Callable[[Key], str], caption: str) -> Grid:
    """Return a block with one row per data set and machine."""
    rows = []
    for dataset, machine in product(sheet.datasets, sheet.machines):
        texts = [show(key) for key in _keys(sheet, dataset, machine)]
        if set(texts) != {NOTHING}:
            rows.append([sheet.name(_place(dataset), kernel=False), sheet.label(machine), *texts])
    return Grid(_columns(sheet, "machine"), once(rows), caption)


def _columns(sheet: Sheet, *heads: str) -> tuple[Column, ...]:
    kernels = (k.upper() if degree is None else f"{k} {degree}" for k, degree in sheet.kernels)
    return (*words("data", *heads), *numbers(*kernels))


def _place(dataset: str) -> Key:
    return Key(dataset, "", None, "")


def _keys(sheet: Sheet, dataset: str, machine: str) -> list[Key]:
    return [Key(dataset, kernel, degree, machine) for kernel, degree in sheet.kernels]
