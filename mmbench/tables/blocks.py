"""Table blocks that several layouts share: accuracies, CPU times, significance tests, certificates.

Most blocks have one column per machine. In this module, a `place` is a combination of data set,
kernel, degree and training size. Each row of a block shows one `place` (see
`mmbench.tables.sheet`). The long table of an experiment has one row per table cell and metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mmbench.errors import SEVERITY
from mmbench.jobs.store import Key, grouped
from mmbench.results.statistics import (
    LEVEL,
    Ranks,
    holm,
    mcnemar_p,
    paired_p,
    rank_machines,
    wins_and_losses,
)
from mmbench.selection.metrics import METRICS
from mmbench.tables.frame import (
    CALIBRATION,
    CONFUSION,
    COUNTED,
    METRIC,
    PUBLISHED_ONLY,
    STAGES,
    Row,
    certificates,
)
from mmbench.tables.protocol import grid_rows
from mmbench.tables.sheet import KernelKey, Sheet
from mmbench.tables.table import (
    NOTHING,
    Column,
    Grid,
    Shown,
    join,
    kernel_text,
    measured_text,
    numbers,
    once,
    published_text,
    seconds_text,
    small_text,
    words,
)

#: Type of a function that maps a row of the long table to the text of a table cell.
Write = Callable[[Row], str]
#: Type of a dict that maps the first columns of a table block to functions. Each function returns
#: the text in its column for the `place` of a row (a `Key` with an empty machine).
Heads = Mapping[Column, Callable[[Key], object]]

# -- blocks with one column per machine ------------------------------------------------------------


def by_machine(
    sheet: Sheet,
    cell: Callable[[Key], str],
    caption: str = "",
    *,
    heads: Heads | None = None,
    places: Sequence[Key] | None = None,
    machines: Sequence[str] | None = None,
    group: str = "",
) -> Grid:
    """Return a table block with one row per data set, kernel and training size.

    The table block has one column per machine, after the columns `heads`. By default, the columns
    `heads` show the data set and the kernel, and also the training size if there are several
    training sizes. The function `cell` returns the text of a table cell. The text `caption` is
    printed above the block, and the text `group` above the columns of the machines.
    """
    machines = sheet.machines if machines is None else machines
    heads = heads or place_heads(sheet, lambda place: place.dataset)
    rows = [
        [
            *(str(text(place)) for text in heads.values()),
            *(cell(place._replace(machine=machine)) for machine in machines),
        ]
        for place in (sheet.places if places is None else places)
    ]
    return Grid((*heads, *sheet.columns(machines=machines, group=group)), rows, caption)


def place_heads(sheet: Sheet, name: Callable[[Key], str]) -> Heads:
    """Return the columns data set and kernel, plus training size if there are several sizes."""
    columns = (*words("data set", "kernel"), *numbers("rows"))
    texts = (name, lambda place: kernel_text(place.kernel, place.degree), lambda place: place.size)
    return dict(list(zip(columns, texts, strict=True))[: 2 + sheet.experiment.sized])


def data_heads(name: Callable[[Key], str], head: str = "data") -> Heads:
    """Return the first column of a block with one row per data set: the names of data sets."""
    return {Column(head, "left"): name}


def results(
    sheet: Sheet,
    metric: str,
    write: Write,
    caption: str = "",
    heads: Heads | None = None,
    group: str = "",
) -> Grid:
    """Return a table block with the values of a metric, for each data set and machine.

    The function `write` returns the text of a value. The value is followed by its comparison mark
    and by the marks of its footnotes. The comparison mark states whether the value agrees with the
    published value. `by_machine` describes the arguments `caption`, `heads` and `group`.
    """

    def cell(key: Key) -> str:
        row = sheet.row(key, metric)
        return sheet.marked(write(row), row)

    heads = heads or place_heads(sheet, lambda place: sheet.head(place, name=place.dataset))
    return by_machine(sheet, cell, caption, heads=heads, group=group)


def stacked(
    sheet: Sheet, places: Sequence[Key], texts: Mapping[str, Write], caption: str = ""
) -> Grid:
    """Return a table block with one column per machine and several rows per data set.

    Each data set has one row per entry of the dict `texts`. The key of an entry is the text in the
    second column. The value of an entry is a function that returns the text of a table cell, given
    the row of the long table for the accuracy. The first column contains the name of the data set.
    If there are several kernels and `caption` is empty, the first column also contains the name of
    the kernel.
    """
    rows = []
    for place in places:
        head = sheet.head(place, sheet.printed(place.dataset) if caption else "")
        for name, text in texts.items():
            rows.append([head, name, *map(text, sheet.line(place, METRIC))])
            head = ""
    return Grid(sheet.columns("data", ""), rows, caption)


#: Type of a dict with the measured or the published results, as three data frames: means (key
#: ``mean``), standard deviations (``sd``) and numbers of splits (``n``). Each data frame has one
#: row per data set and one column per machine.
Side = Mapping[str, Any]


def both(sheet: Sheet, places: Sequence[Key]) -> list[Side]:
    """Return the measured results and the published results, each as a dict of data frames."""
    splits = {row["dataset"]: row["n_splits"] for row in sheet.published if row["metric"] == METRIC}
    n_splits = np.array([splits.get(place.dataset) for place in places], dtype=float)
    names = ("measured", "sd", "n", "published", "published_spread")
    mean, sd, n, printed, spread = (sheet.wide(places, METRIC, name) for name in names)
    theirs = {"mean": printed, "sd": spread, "n": printed.notna().mul(n_splits, axis=0)}
    return [{"mean": mean, "sd": sd, "n": n}, theirs]


def paired(
    sheet: Sheet,
    *,
    caption: str = "",
    decimals: int = 1,
    sd: bool = False,
    change: Callable[[Row], Row] = lambda row: row,
    count: Callable[[Sheet, Side], dict[str, list[str]]] | None = None,
) -> list[Grid]:
    """Return table blocks of accuracies, with a measured row and a published row per data set.

    If `caption` is given, each kernel has its own block, and the kernel's name replaces ``{}`` in
    the caption. The function `change` is applied to each row of the long table before the row is
    shown, for example to convert an accuracy to an error rate. The functions `measured_text` and
    `published_text` format the values, with the arguments `decimals` and `sd`.

    The function `count` summarizes the measured or the published results. The function `count`
    returns a dict from headings to lists with one text per machine. At the end of the block, each
    heading has two rows, for the measured and for the published results.
    """

    def measured(row: Row) -> str:
        text = measured_text(change(row), decimals, sd)
        return text if row.status == PUBLISHED_ONLY else sheet.marked(text, change(row))

    def published(row: Row) -> str:
        cited = sheet.cite(row) if row.status == PUBLISHED_ONLY else ""
        return join(published_text(change(row), decimals, sd), cited)

    texts, grids = {"measured": measured, "published": published}, []
    for kernel in sheet.kernels if caption else [None]:
        places = sheet.places_of(kernel) if kernel else sheet.places
        name = caption.format(sheet.caption(kernel)) if kernel else ""
        grids.append(stacked(sheet, places, texts, name))
        if count:
            ours, theirs = (count(sheet, side) for side in both(sheet, places))
            for head, text in ours.items():
                grids[-1].rows.append([head, "measured", *text])
                grids[-1].rows.append(["", "published", *theirs[head]])
    return grids


# -- CPU seconds -------------------------------------------------------------------------------


def by_name(sheet: Sheet, key: Key) -> dict[str, Any]:
    """Return the mean CPU seconds per split of each stage of a job. The stage "calibration" is left
    out if its CPU time was not measured.
    """
    found = {name: sheet.value(key, f"seconds_{name}") for name in (*STAGES, CALIBRATION)}
    return {n: value for n, value in found.items() if n != CALIBRATION or value is not None}


def total(sheet: Sheet, key: Key, stages: Sequence[str] = ()) -> float | None:
    """Return the CPU seconds per split, summed over `stages` (by default, all stages).

    Returns None if the CPU time of a stage is unknown.
    """
    found = by_name(sheet, key)
    values = [found[name] for name in stages or found]
    return None if None in values else sum(values)


def total_with_search(sheet: Sheet, key: Key) -> float | None:
    """Return a machine's CPU seconds per split, plus the times of the grid searches whose
    parameters the machine reuses.
    """
    used = (key._replace(machine=machine) for machine in _used(sheet, key.machine))
    values: list[Any] = [total(sheet, key), *(sheet.value(k, "seconds_selection") for k in used)]
    return None if None in values else sum(values)


def _used(sheet: Sheet, machine: str) -> Iterator[str]:
    """Yield the machines from which a machine takes its parameters, directly or indirectly."""
    while machine in sheet.plan.uses:
        machine = sheet.plan.uses[machine]
        yield machine


def taken_over(sheet: Sheet, machines: Sequence[str]) -> dict[str, str]:
    """For each machine whose selected parameters are reused, list the machines that use them.

    The keys and the values of the returned dict contain the labels of machines.
    """
    pairs = ((sheet.label(u), sheet.label(m)) for m in machines for u in _used(sheet, m))
    return {
        used: "all other machines" if len(users) == len(machines) - 1 > 3 else ", ".join(users)
        for used, users in grouped(pairs).items()
    }


def with_search_text(sheet: Sheet, machines: Sequence[str]) -> str:
    """Return sentences that name the machines whose CPU times include the grid search of another
    machine, or an empty text if there are none.
    """
    return "".join(
        f" The time of {users} includes the search of {used}, whose parameters are reused."
        for used, users in taken_over(sheet, machines).items()
    )


def by_stage(sheet: Sheet) -> Grid:
    """Return a table block of the CPU seconds of each stage, with one column per machine."""

    def text(key: Key) -> str:
        values = by_name(sheet, key).values()
        return " + ".join(map(seconds_text, values)) if None not in values else NOTHING

    calibrated = f"seconds_{CALIBRATION}" in set(sheet.frame.metric)
    names = [*STAGES, *[f"{CALIBRATION} (if any)"][:calibrated]]
    caption = f"CPU seconds per split: {' + '.join(names)}"
    for used, users in taken_over(sheet, sheet.machines).items():
        caption += f"; the search of {used}, whose time is in its column, also serves {users}"
    grid = by_machine(sheet, text, caption)
    measured = any(cell != NOTHING for row in grid.rows for cell in row[-len(sheet.machines) :])
    return grid if measured else replace(grid, rows=[])


# -- metrics in the configuration -----------------------------------------------------------------


CONTENT_LABELS = {METRIC: "Accuracy (%)", CONFUSION: "Confusion matrices"}


def label(name: str) -> str:
    """Return the heading of a metric in tables."""
    return CONTENT_LABELS[name] if name in CONTENT_LABELS else METRICS[name].label


def sign_of(metric: str) -> int:
    """Return -1 if smaller values of a metric are better, else 1."""
    smaller = METRICS[metric].smaller_is_better if metric in METRICS else metric != METRIC
    return -1 if smaller else 1


def definitions(sheet: Sheet) -> list[str]:
    """Return the definitions of a table's metrics, one sentence per metric with a definition."""
    return [f"{m.label}: {m.about}." for m in map(METRICS.get, sheet.metrics) if m and m.about]


def metric_text(row: Row) -> str:
    """Return the value of a metric as text, without footnote marks.

    If the accuracy is missing, the text is the status of the table cell. If another metric is
    missing, the text is a dash.
    """
    if row.metric == METRIC:
        return measured_text(row, 1)
    return NOTHING if row.measured is None else measured_text(row, 3)


def grids(sheet: Sheet) -> Iterator[Grid]:
    """Yield one table block per requested metric.

    Confusion matrices have one block per table cell.
    """
    for name in sheet.metrics:
        if name == CONFUSION:
            yield from confusions(sheet)
        else:
            yield results(sheet, name, metric_text, label(name))


def confusions(sheet: Sheet) -> Iterator[Grid]:
    """Yield the confusion matrix of each table cell as a table block."""
    for key in (place._replace(machine=m) for place in sheet.places for m in sheet.machines):
        confusion = sheet.cells[key].confusion if key in sheet.cells else {}
        subject = join(key.dataset, kernel_text(key.kernel, key.degree), f"{key.size or ''}")
        rows = [[name, *map(str, counts)] for name, counts in confusion.items()]
        columns = (*words("true \\ predicted"), *numbers(*confusion))
        caption = f"Confusion matrix of {sheet.label(key.machine)}, {subject}"
        yield Grid(columns, rows, f"{caption}: test rows of all splits")


# -- differences between machines ----------------------------------------------------------------

BETTER, WORSE = "+", "−"


def with_results(sheet: Sheet, places: Sequence[Key], metric: str = METRIC) -> list[str]:
    """Return the machines that have a result for at least one of the `places`."""
    return list(map(str, sheet.wide(places, metric).dropna(axis=1, how="all")))


def rank_decimals(metric: str) -> int:
    """Return the number of decimals to which a metric is rounded before machines are ranked."""
    return 2 if metric == METRIC else 4


def ranks_of(sheet: Sheet, kernel: KernelKey, metric: str = METRIC) -> Ranks:
    """Return the mean ranks of the machines over the data sets, for one kernel.

    Machines without results are left out. The ranked values are means over common splits, on which
    all ranked machines have results. Data sets on which the machines have no common split are left
    out. Each kernel has its own mean ranks, since the results of two kernels on one data set are
    dependent. Raises ValueError for fewer than three machines or fewer than two data sets.
    """
    places = sheet.places_of(kernel)
    values = sheet.common(places, with_results(sheet, places, metric), metric).dropna()
    return rank_machines(sign_of(metric) * values, rank_decimals(metric))


def split_gaps(
    sheet: Sheet, place: Key, machine: str, reference: str, metric: str = METRIC
) -> list[float]:
    """Return, for each split, the improvement of the machine `machine` over the machine
    `reference`.

    Only splits on which both machines have results are used. The improvements are rounded to nine
    decimals: rounding errors would make equal improvements different, and zero improvements
    positive or negative.
    """
    keys = (place._replace(machine=name) for name in (machine, reference))
    ours, theirs = (sheet.by_split(key, metric) for key in keys)
    common = sorted(ours.keys() & theirs.keys())
    return [round(sign_of(metric) * (ours[split] - theirs[split]), 9) for split in common]


def incomplete(sheet: Sheet, keys: Sequence[Key], metric: str) -> dict[Key, int]:
    """Return the table cells with missing splits, and for each of them the number of splits with a
    result.

    A split is missing in a table cell if only other table cells in `keys` have a result on the
    split. If the results on single splits are unknown, the numbers of splits in the long table are
    compared. If the number of splits of a table cell is unknown, the table cell is treated as
    complete.
    """
    rows = [row for key in keys if (row := sheet.row(key, metric)).status != PUBLISHED_ONLY]
    splits = {row.key: sheet.by_split(row.key, metric) for row in rows}
    counts = {r.key: 0 if r.measured is None else len(splits[r.key]) or r.n for r in rows}
    most = max([len({at for own in splits.values() for at in own}), *filter(None, counts.values())])
    return {key: n for key, n in counts.items() if n is not None and n < most}


#: Repeat and fold of the first run on an official test set, both counted from 0.
FIRST = (0, 0)
#: Names of the paired tests that determine which values are printed in bold.
RESAMPLED, MCNEMAR = "the corrected resampled t-test over splits", "McNemar's test on the test part"


def embolden(sheet: Sheet, grids: Iterable[Grid]) -> list[str]:
    """On each data set, print in bold the best machine and all machines that do not differ
    significantly from the best machine.

    Each machine is compared with the best machine by `paired_test`. If the values of single splits
    are unknown, there are no tests, and no text is bold. Table cells with missing splits are not
    compared. Returns a note that names the tests, and the table cells with missing splits.
    """
    cells = [cell for grid in grids for row in grid.rows for cell in row if isinstance(cell, Shown)]
    # `dict.fromkeys` keeps each table cell once, in the order of the columns. If several machines
    # have the best value, the machine in the leftmost column is treated as the best.
    values = dict.fromkeys((c.row.key, c.row.metric) for c in cells if c.row.measured is not None)
    places = grouped(((key._replace(machine=""), metric), key) for key, metric in values)
    bold, tests, left_out = set(), set(), list[Key]()
    for (_, metric), keys in places.items():
        partial = incomplete(sheet, keys, metric)
        left_out += partial
        # The compared values come from the long table, since a printed value may be transformed,
        # for example to an error rate.
        scores = {key: -sign_of(metric) * (sheet.value(key, metric) or 0.0) for key in keys}
        ranked = sorted((key for key in keys if key not in partial), key=scores.__getitem__)
        found = {key: paired_test(sheet, key, ranked[0], metric) for key in ranked[1:]}
        corrected = holm([p for p, _ in found.values()])
        used = {name for p, name in found.values() if not math.isnan(p)}
        same = [key for key, p in zip(found, corrected, strict=True) if p >= LEVEL]
        bold |= {(key, metric) for key in ([ranked[0], *same] if used else [])}
        tests |= used
    for cell in cells:
        cell.bold = (cell.row.key, cell.row.metric) in bold
    lost = [f"Not compared, as splits are missing: {sheet.about(left_out)}."] if left_out else []
    if not tests:
        return lost
    text = (
        f"Bold: the best machine, and all machines that {' or '.join(sorted(tests))} does not "
        f"distinguish from it at the level {LEVEL:g} (Holm's correction over the comparisons of "
        "one data set)."
    )
    return [join(text, *lost)]


def paired_test(sheet: Sheet, key: Key, best: Key, metric: str) -> tuple[float, str]:
    """Compare two machines on a data set by a paired test. Return the p-value and the name of the
    test.

    If the test is not possible, the p-value is NaN.

    In general, the test is the corrected resampled t-test over splits. On an official test part,
    however, runs with different seeds have the same test rows, so that a test over seeds would
    ignore the sampling error of the test part. Therefore, McNemar's test is applied to the
    predictions of the run with the first seed.
    """
    if not sheet.has_official_test(key):
        gaps = split_gaps(sheet, key, key.machine, best.machine, metric)
        return paired_p(gaps, size_ratio(sheet, key, best.machine)), RESAMPLED
    first, second = (sheet.hits(name, FIRST) for name in (key, best))
    if metric not in COUNTED or first is None or second is None:
        return math.nan, MCNEMAR
    return mcnemar_p(*wins_and_losses(first, second)), MCNEMAR


def dataset_gaps(
    sheet: Sheet, kernel: KernelKey, machine: str, reference: str, metric: str = METRIC
) -> list[float]:
    """Return, for each data set, the improvement of the machine `machine` over the machine
    `reference`.

    The improvement is the difference of the means over common splits, on which both machines have
    results, rounded as in `split_gaps`. Data sets on which the machines have no common split are
    left out.
    """
    values = sheet.common(sheet.places_of(kernel), [machine, reference], metric)
    return list((sign_of(metric) * (values[machine] - values[reference])).dropna().round(9))


def size_ratio(sheet: Sheet, key: Key, reference: str) -> float:
    """Return the number of test rows divided by the number of training rows, or 0 if unknown.

    Both numbers are summed over the splits on which the machine of `key` and the machine
    `reference` have results. If the plan states a ratio, the ratio of the plan is returned. The
    plan counts training rows before ``max_train`` excludes some of them, since the excluded rows
    also determine the overlap of the training parts of two splits.
    """
    common = sheet.by_split(key._replace(machine=reference))
    sizes = (sheet.by_split(key, name) for name in ("n_test", "n_train"))
    n_test, n_train = (sum(n for at, n in own.items() if at in common) for own in sizes)
    return sheet.plan.test_to_train or (n_test / n_train if n_train else 0.0)


def signed(difference: float, decimals: int = 2) -> str:
    """Return a difference as text with its sign."""
    return f"{difference:+.{decimals}f}".replace("-", WORSE)


def direction(difference: float) -> str:
    """Return `BETTER` if a significant difference is positive, else `WORSE`."""
    return BETTER if difference > 0 else WORSE


# -- below the results of every table --------------------------------------------------------------

#: Explanation of the texts in the block of selected parameters.
CHOICES = "median over splits and pairs of classes (min, max: selections at the ends of the grid)"


def search_space(sheet: Sheet) -> Grid:
    """Return a table block of the parameter grids, with one row per machine and parameter."""
    rows = once(grid_rows(sheet.jobs, sheet.label))
    return Grid(words("machine", "parameter", "grid"), rows, "Parameter grids")


def parameters(sheet: Sheet) -> Grid:
    """Return a table block of the parameters that grid search selected for each machine."""
    choosers = {key.machine for key, cell in sheet.cells.items() if cell.selected}
    machines = [machine for machine in sheet.machines if machine in choosers]
    places, caption = sheet.places if machines else (), f"Selected parameters: {CHOICES}"
    return by_machine(sheet, sheet.chosen, caption, places=places, machines=machines)


def fits_grid(sheet: Sheet) -> Grid:
    """Return a table block on the trained binary classifiers of each machine: statuses, algorithms,
    duality gaps, and constraint violations.
    """
    cells = sheet.cells.values()
    records = grouped((cell.key.machine, record) for cell in cells for record in cell.done)
    found = {m: certificates(records[m]) for m in sheet.configured if m in records}
    routes, rows = any(fits["routes"] for fits in found.values()), []
    names = ("gap_tolerance", "median_gap", "worst_gap", "worst_violation")
    for machine, fits in found.items():
        statuses = sorted(fits["statuses"].items(), key=lambda item: -SEVERITY.index(item[0]))
        ended = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in statuses)
        limited = f"({fits['n_limited']} at the coefficient limit)" if fits["n_limited"] else ""
        texts, above = [small_text(fits[name]) for name in names], fits["gaps_above_tolerance"]
        texts.insert(3, NOTHING if above is None else f"{above} of {fits['n_gaps']}")
        route = [fits["routes"] or NOTHING][:routes]
        rows.append([sheet.label(machine), join(ended, limited), *route, *texts])
    heads = words("machine", "fits", *["route"][:routes])
    ends = ("median gap", "largest gap", "gaps above tolerance", "largest violation")
    caption = "Certificates of all fits: relative duality gaps and constraint violations"
    return Grid((*heads, *numbers("tolerance", *ends)), rows, caption)
