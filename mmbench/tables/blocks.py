"""Blocks of tables that several layouts share: accuracies, CPU times, tests, certificates.

A place is the row of a table with one column per machine, see `mmbench.tables.sheet`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from mmbench.jobs.store import Key
from mmbench.tables.measures import CONFUSION, ROW_NAMES
from mmbench.tables.model import (
    NOTHING,
    Column,
    Grid,
    join,
    kernel_text,
    measured_text,
    published_text,
    seconds_text,
)
from mmbench.tables.records import PUBLISHED_ONLY, grouped
from mmbench.tables.rows import Row
from mmbench.tables.sheet import KernelKey, Sheet
from mmbench.tables.statistics import Ranks, Sample, rank_machines

#: Name of the accuracy in the long table, and in the list of metrics.
METRIC, ACCURACY = "accuracy_pct", "accuracy"

#: Function that returns the text of a table cell, given its row of the long table.
Write = Callable[[Row | None], str]
one_decimal: Write = partial(measured_text, decimals=1)
published_one_decimal: Write = partial(published_text, decimals=1)

# -- grids with one column per machine -------------------------------------------------------------


def by_machine(
    sheet: Sheet,
    cell: Callable[[Key], str],
    caption: str = "",
    *,
    heads: Callable[[Key], list[str]] | None = None,
    words: tuple[Column, ...] | None = None,
    places: Sequence[Key] | None = None,
    machines: Sequence[str] | None = None,
    group: str = "",
) -> Grid:
    """Return a block with one row per place and one column per machine.

    `heads` returns the texts of a place in the first columns, which are `words`; by default data
    set, kernel and, if there are several training sizes, the training size.
    """
    machines = sheet.machines if machines is None else machines
    if words is None:
        sized = any(place.size is not None for place in sheet.places)
        words = (*sheet.columns("data set", "kernel", machines=()), *[Column("rows")][:sized])
    heads = heads or (lambda place: [place.dataset, *_kernel_and_size(place)])
    rows = [
        [*heads(place), *(cell(place._replace(machine=machine)) for machine in machines)]
        for place in (sheet.places if places is None else places)
    ]
    return Grid((*words, *sheet.columns(machines=machines, group=group)), rows, caption)


def _kernel_and_size(place: Key) -> list[str]:
    size = [] if place.size is None else [str(place.size)]
    return [kernel_text(place.kernel, place.degree), *size]


def results(
    sheet: Sheet,
    metric: str,
    write: Write,
    caption: str = "",
    heads: Callable[[Key], list[str]] | None = None,
    words: tuple[Column, ...] | None = None,
    group: str = "",
) -> Grid:
    """Return the block of `by_machine` with the values, marks and footnotes of a metric."""

    def cell(key: Key) -> str:
        row = sheet.row(key, metric)
        return sheet.marked(write(row), row)

    def default_heads(place: Key) -> list[str]:
        return [sheet.head(place, name=place.dataset), *_kernel_and_size(place)]

    heads = heads or default_heads
    return by_machine(sheet, cell, caption, heads=heads, words=words, group=group)


def paired(
    sheet: Sheet,
    places: Sequence[Key],
    measured: Write = one_decimal,
    published: Write = published_one_decimal,
    caption: str = "",
) -> Grid:
    """Return a block with two rows per place: measured accuracies, and published accuracies.

    With a caption, the rows do not name the kernel, which is part of the caption.
    """

    def ours(row: Row | None) -> str:
        ran = row is not None and row.status != PUBLISHED_ONLY
        return sheet.marked(measured(row), row) if ran else measured(row)

    def theirs(row: Row | None) -> str:
        alone = row is not None and row.status == PUBLISHED_ONLY
        return join(published(row), sheet.cite(row) if alone else "")

    rows: list[list[str]] = []
    for place in places:
        found = sheet.line(place, METRIC)
        rows.append([sheet.head(place, kernel=not caption), "measured", *map(ours, found)])
        rows.append(["", "published", *map(theirs, found)])
    return Grid(sheet.columns("data", ""), rows, caption)


# -- CPU seconds -------------------------------------------------------------------------------

STAGES = ("selection", "training", "test")
#: Additional stage of machines with calibrated probabilities.
CALIBRATION = "calibration"


def by_name(sheet: Sheet, key: Key) -> dict[str, float | None]:
    """Return the mean CPU seconds per split of each stage; calibration only if it was measured."""
    found = {name: sheet.value(key, f"seconds_{name}") for name in (*STAGES, CALIBRATION)}
    if found[CALIBRATION] is None:
        del found[CALIBRATION]
    return found


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum of some values; None if a value is None."""
    values = list(values)
    parts = [value for value in values if value is not None]
    return sum(parts) if len(parts) == len(values) else None


def total(sheet: Sheet, key: Key, stages: Sequence[str] = ()) -> float | None:
    """Return the CPU seconds per split of some stages (default: all); None if a time is unknown."""
    found = by_name(sheet, key)
    return _sum(found[name] for name in stages or found)


def total_with_search(sheet: Sheet, key: Key) -> float | None:
    """Return the CPU seconds per split, including other machines' searches that are reused."""
    used = [key._replace(machine=machine) for machine in _used(sheet, key.machine)]
    return _sum([total(sheet, key), *(total(sheet, other, ("selection",)) for other in used)])


def _used(sheet: Sheet, machine: str) -> list[str]:
    """Return the chain of machines from which a machine takes its parameters, nearest first."""
    used = []
    while machine in sheet.plan.uses:
        machine = sheet.plan.uses[machine]
        used.append(machine)
    return used


def taken_over(sheet: Sheet, machines: Sequence[str]) -> dict[str, str]:
    """Return the labels of the machines that reuse selected parameters, by label of the source."""
    pairs = ((sheet.label(u), sheet.label(m)) for m in machines for u in _used(sheet, m))
    return {used: ", ".join(users) for used, users in grouped(pairs).items()}


def with_search_text(sheet: Sheet, machines: Sequence[str]) -> str:
    """Return a sentence that names the machines with reused searches; empty if there are none."""
    return "".join(
        f" Those of {users} include the search of {used}, whose parameters they take over."
        for used, users in taken_over(sheet, machines).items()
    )


def by_stage(sheet: Sheet) -> Grid:
    """Return the CPU seconds per stage: one row per place, one column per machine."""

    def text(key: Key) -> str:
        values = by_name(sheet, key).values()
        return " + ".join(map(seconds_text, values)) if None not in values else NOTHING

    calibrated = any(row.metric == f"seconds_{CALIBRATION}" for row in sheet.rows)
    names = [*STAGES, *[f"{CALIBRATION} where asked for"][:calibrated]]
    caption = f"CPU seconds a split: {' + '.join(names)}"
    for used, users in taken_over(sheet, sheet.machines).items():
        caption += f"; the search of {used}, taken over by {users}, counts there alone"
    grid = by_machine(sheet, text, caption)
    measured = any(cell != NOTHING for row in grid.rows for cell in row[-len(sheet.machines) :])
    return grid if measured else replace(grid, rows=[])


# -- averages, and counts by the papers' rules ---------------------------------------------------

#: Results on one data set (mean, standard deviation, number of splits), by machine.
Line = dict[str, Sample]


def measured_lines(sheet: Sheet, places: Iterable[Key], metric: str = METRIC) -> list[Line]:
    """Return the measured results of each place; machines without a result are left out."""
    return [
        {
            machine: Sample(row.measured, row.sd or 0.0, row.n or 0)
            for machine, row in zip(sheet.machines, sheet.line(place, metric), strict=True)
            if row is not None and row.measured is not None
        }
        for place in places
    ]


def published_lines(sheet: Sheet, places: Iterable[Key]) -> list[Line]:
    """Return the published results of each place."""
    return [
        {
            row["machine"]: Sample(row["value"], row["std"], row["n_splits"])
            for row in sheet.published_of(place.dataset)
            if row["metric"] == METRIC
            and row["machine"] in sheet.machines
            and row["kernel"] == place.kernel
        }
        for place in places
    ]


def both(sheet: Sheet, places: Sequence[Key]) -> dict[str, list[Line]]:
    """Return the measured results and the published results of each place."""
    return {
        "measured": measured_lines(sheet, places),
        "published": published_lines(sheet, places),
    }


# -- metrics of the configuration -----------------------------------------------------------------


def label(name: str) -> str:
    """Return the heading under which tables show a metric."""
    from mmbench.selection.metrics import METRICS

    if name == CONFUSION:
        return "Confusion matrices"
    return f"{METRICS[name].label} (%)" if name in ROW_NAMES else METRICS[name].label


def row_name(name: str) -> str:
    """Return the name of a metric in the long table."""
    return ROW_NAMES.get(name, name)


def smaller_is_better(name: str) -> bool:
    """Return whether smaller values of a metric are better."""
    from mmbench.selection.metrics import METRICS

    return METRICS[name].smaller_is_better


def sign_of(metric: str) -> int:
    """Return -1 if smaller values of a metric are better, else 1."""
    return -1 if smaller_is_better(metric) else 1


def definitions(sheet: Sheet) -> list[str]:
    """Return the definitions of the shown metrics, one sentence per metric that has one."""
    from mmbench.selection.metrics import METRICS

    shown = [METRICS[name] for name in sheet.metrics if name in METRICS]
    return [f"{metric.label}: {metric.about}." for metric in shown if metric.about]


def cell(row: Row | None, name: str) -> str:
    """Return the value of a metric as text, without footnotes; a dash if there is no value."""
    if row is not None and row.measured is None and row.metric not in ROW_NAMES.values():
        return NOTHING
    return measured_text(row, 1 if name in ROW_NAMES else 3)


def grids(sheet: Sheet) -> list[Grid]:
    """Return one block per requested metric; for confusion matrices, one per table cell."""
    found = []
    for name in sheet.metrics:
        if name == CONFUSION:
            found += confusions(sheet)
        else:
            found.append(results(sheet, row_name(name), partial(cell, name=name), label(name)))
    return found


def confusions(sheet: Sheet) -> list[Grid]:
    """Return the confusion matrices, one block per place and machine."""
    grids = []
    for key in (place._replace(machine=m) for place in sheet.places for m in sheet.machines):
        if (found := sheet.measures.confusion.get(key)) is None:
            continue
        subject = join(key.dataset, kernel_text(key.kernel, key.degree), f"{key.size or ''}")
        columns = (Column("true \\ predicted", align="left"), *map(Column, found.labels))
        rows = [
            [name, *map(str, counts)]
            for name, counts in zip(found.labels, found.counts, strict=True)
        ]
        caption = f"Confusion matrix of {sheet.label(key.machine)}, {subject}"
        grids.append(Grid(columns, rows, f"{caption}: test rows of all splits"))
    return grids


# -- differences between machines ----------------------------------------------------------------

BETTER, WORSE = "+", "−"


def with_results(sheet: Sheet, metric: str = ACCURACY) -> list[str]:
    """Return the machines with a result on at least one data set."""
    found = {
        name for line in measured_lines(sheet, sheet.places, row_name(metric)) for name in line
    }
    return [machine for machine in sheet.machines if machine in found]


def ranks_of(sheet: Sheet, kernel: KernelKey, metric: str = ACCURACY) -> Ranks:
    """Return the mean ranks of the machines with results, for one kernel.

    Only data sets with results of all these machines are used. Kernels are ranked separately,
    because results on one data set with two kernels are not independent. Raises ValueError if there
    are too few machines or data sets.
    """
    lines = measured_lines(sheet, sheet.places_of(kernel), row_name(metric))
    machines = [machine for machine in sheet.machines if any(machine in line for line in lines)]
    whole = [line for line in lines if len(line) == len(machines)]
    sign, decimals = sign_of(metric), 2 if metric == ACCURACY else 4
    return rank_machines([{m: sign * line[m].mean for m in machines} for line in whole], decimals)


def split_gaps(
    sheet: Sheet, place: Key, machine: str, reference: str, metric: str = ACCURACY
) -> list[float]:
    """Return the differences from a reference machine on all common splits; positive is better."""
    keys = [place._replace(machine=name) for name in (machine, reference)]
    if metric == ACCURACY:
        ours, theirs = (sheet.by_split.get(key, {}) for key in keys)
    else:
        ours, theirs = (sheet.measures.values.get((key, metric), {}) for key in keys)
    common = sorted(ours.keys() & theirs.keys())
    return [sign_of(metric) * (ours[split] - theirs[split]) for split in common]


def dataset_gaps(
    sheet: Sheet, kernel: KernelKey, machine: str, reference: str, metric: str = ACCURACY
) -> list[float]:
    """Return the differences of means from a reference machine per data set; positive is better."""
    lines = measured_lines(sheet, sheet.places_of(kernel), row_name(metric))
    common = [line for line in lines if machine in line and reference in line]
    return [sign_of(metric) * (line[machine].mean - line[reference].mean) for line in common]


def test_to_train(sheet: Sheet, place: Key) -> float:
    """Return the ratio of the numbers of test and training rows; 0 if they are unknown."""
    sizes = sheet.sizes.get(place.dataset, {})
    return sizes["n_test"] / sizes["n_train"] if {"n_test", "n_train"} <= sizes.keys() else 0.0


def signed(difference: float, decimals: int = 2) -> str:
    """Return a difference as text with its sign."""
    return f"{difference:+.{decimals}f}".replace("-", WORSE)


def direction(difference: float) -> str:
    """Return the mark of a significant difference, `BETTER` or `WORSE`."""
    return BETTER if difference > 0 else WORSE


# -- below the results of every table --------------------------------------------------------------

#: Explanation of the texts of selected parameters.
CHOICES = "median over splits and pairs; (min, max: how many choices lie at an end of the grid)"


def parameters(sheet: Sheet) -> Grid:
    """Return the parameters that each machine has selected by grid search."""
    choosers = {key.machine for key, choices in sheet.selected.items() if choices}
    machines = [machine for machine in sheet.machines if machine in choosers]
    places = sheet.places if machines else ()

    def text(key: Key) -> str:
        return ", ".join(map(str, sheet.selected.get(key, ()))) or NOTHING

    caption = f"Selected parameters: {CHOICES}"
    return by_machine(sheet, text, caption, places=places, machines=machines)


def certificates(sheet: Sheet) -> Grid:
    """Return statuses, routes, duality gaps and largest violation of the fits of each machine."""
    numbers = ["gap asked", "median gap", "largest gap", "gaps above", "largest violation"]
    found = {m: sheet.fits[m] for m in sheet.configured if m in sheet.fits}
    routes = any(fits.routes for fits in found.values())
    rows = []
    for machine, fits in found.items():
        gaps = fits.gap_tolerance, fits.median_gap, fits.worst_gap, fits.worst_violation
        texts = [NOTHING if value is None else f"{value:.1e}" for value in gaps]
        above = NOTHING if fits.n_above is None else f"{fits.n_above} of {len(fits.gaps)}"
        words = [sheet.label(machine), fits.ended(), *[fits.routes_text() or NOTHING][:routes]]
        rows.append([*words, *texts[:3], above, texts[3]])
    heads = ["machine", "fits", *["route"][:routes]]
    caption = "Certificates of all fits: relative duality gaps, violations of constraints"
    return Grid((*sheet.columns(*heads, machines=()), *map(Column, numbers)), rows, caption)
