"""Table blocks that several layouts share: accuracies, CPU times, confusions, certificates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mmbench.errors import SEVERITY, Status
from mmbench.jobs.planned import Key, grouped
from mmbench.results.cells import (
    CERTIFIED,
    CONFUSION,
    COUNTED,
    METRIC,
    PUBLISHED_ONLY,
    STORED,
    TOTALS,
    Row,
    all_fits,
    counts,
    counts_text,
    finished,
    routes_text,
    selected,
)
from mmbench.results.columns import columns
from mmbench.results.differences import POWER, Difference, worse_than_best
from mmbench.results.frames import Results
from mmbench.results.pairwise import difference_of, incomplete, sign_of
from mmbench.results.splits import CALIBRATION, SECONDS, STAGES
from mmbench.results.statistics import LEVEL
from mmbench.selection.metrics import METRICS
from mmbench.tables.names import about, caption_of, columns_of, head, notes_of, printed, shown
from mmbench.tables.protocol import grid_rows
from mmbench.tables.text import (
    BEST_IS_BOLD,
    CERTIFICATES,
    MEASUREMENT,
    NOTHING,
    SETTINGS,
    TIMES,
    WORSE_THAN_BEST,
    Column,
    Grid,
    Shown,
    Text,
    join,
    kernel_text,
    measured,
    numbers,
    once,
    published_text,
    seconds_text,
    small_text,
    words,
)

#: Type of a function that maps a row of the frame ``cells`` to the text of a table cell.
Write = Callable[[Row], Any]
#: Type of a dict that maps the first columns of a table block to functions. Each function returns
#: the text in its column for the `place` of a row (a `Key` with an empty machine).
Heads = Mapping[Column, Callable[[Key], object]]

# -- blocks with one column per machine ------------------------------------------------------------


def by_machine(
    results: Results,
    cell: Callable[[Key], Shown],
    caption: str = "",
    *,
    heads: Heads | None = None,
    places: Sequence[Key] | None = None,
    machines: Sequence[str] | None = None,
    group: str = "",
    kind: str = "",
) -> Grid:
    """Return a table block with one row per data set, kernel and training size.

    The table block has one column per machine, after the columns `heads`. By default, the columns
    `heads` show the data set and the kernel, and also the training size if there are several
    training sizes. The function `cell` returns the text of a table cell. The text `caption` is
    printed above the block, and the text `group` above the columns of the machines.
    """
    machines = results.columns if machines is None else machines
    heads = heads or place_heads(results, lambda place: place.dataset)
    rows = [
        [
            *(x if isinstance(x := text(place), Text) else str(x) for text in heads.values()),
            *(cell(place._replace(machine=machine)) for machine in machines),
        ]
        for place in (results.places if places is None else places)
    ]
    columns = (*heads, *columns_of(results, machines=machines, group=group))
    return Grid(columns, rows, caption, kind)


def place_heads(results: Results, name: Callable[[Key], Shown]) -> Heads:
    """Return the columns data set and kernel, plus training size if there are several sizes."""
    columns = (*words("data set", "kernel"), *numbers("rows"))
    texts = (name, lambda place: kernel_text(place.kernel, place.degree), lambda place: place.size)
    return dict(list(zip(columns, texts, strict=True))[: 2 + results.sized])


def data_heads(name: Callable[[Key], Shown], head: str = "data") -> Heads:
    """Return the first column of a block with one row per data set: the names of data sets."""
    return {Column(head, "left"): name}


def values(
    results: Results,
    metric: str,
    write: Write,
    caption: str = "",
    heads: Heads | None = None,
    group: str = "",
    rest: Write = lambda row: "",
) -> Grid:
    """Return a table block with the values of a metric, for each data set and machine.

    The function `write` returns the text of a measured value, and `rest` the text after it. The
    texts are followed by the comparison mark, which states whether the value agrees with the
    published value, and by footnotes. `by_machine` describes the arguments `caption`, `heads` and
    `group`.
    """

    def cell(key: Key) -> Shown:
        row = results.row(key, metric)
        return shown(write(row), row, rest(row))

    heads = heads or place_heads(results, lambda place: head(results, place, name=place.dataset))
    return by_machine(results, cell, caption, heads=heads, group=group)


def stacked(
    results: Results, places: Sequence[Key], texts: Mapping[str, Write], caption: str = ""
) -> Grid:
    """Return a table block with one column per machine and several rows per data set.

    Each data set has one row per entry of the dict `texts`. The key of an entry is the text in the
    second column. The value of an entry is a function that returns the text of a table cell, given
    the row of the frame ``cells`` for the accuracy. The first column contains the name of the data
    set. If there are several kernels and `caption` is empty, the first column also contains the
    name of the kernel.
    """
    rows: list[list[Shown]] = []
    for place in places:
        first: Shown = head(results, place, printed(results, place.dataset) if caption else "")
        line = [results.row(place._replace(machine=m), METRIC) for m in results.columns]
        for name, text in texts.items():
            rows.append([first, name, *map(text, line)])
            first = ""
    return Grid(columns_of(results, "data", ""), rows, caption)


#: Type of a dict with the measured or the published results, as three data frames: means (key
#: ``mean``), standard deviations (``sd``) and numbers of splits (``n``). Each data frame has one
#: row per data set and one column per machine.
Side = Mapping[str, Any]


def both(results: Results, places: Sequence[Key]) -> list[Side]:
    """Return the measured results and the published results, each as a dict of data frames."""
    splits = {
        row["dataset"]: row["n_splits"] for row in results.published if row["metric"] == METRIC
    }
    n_splits = np.array([splits.get(place.dataset) for place in places], dtype=float)
    names = ("measured", "sd", "n", "published", "published_spread")
    mean, sd, n, theirs, spread = (results.wide(places, METRIC, name) for name in names)
    paper = {"mean": theirs, "sd": spread, "n": theirs.notna().mul(n_splits, axis=0)}
    return [{"mean": mean, "sd": sd, "n": n}, paper]


def paired(
    results: Results,
    *,
    caption: str = "",
    decimals: int = 1,
    sd: bool = False,
    error_rates: bool = False,
    count: Callable[[Results, Side], dict[str, list[str]]] | None = None,
) -> list[Grid]:
    """Return table blocks of accuracies, with a measured row and a published row per data set.

    If `caption` is given, each kernel has its own block, and the kernel's name replaces ``{}`` in
    the caption. If `error_rates` is true, 100 minus the accuracy is shown. The functions
    `measured_text` and `published_text` format the values, with the arguments `decimals` and `sd`.

    The function `count` summarizes the measured or the published results. The function `count`
    returns a dict from headings to lists with one text per machine. At the end of the block, each
    heading has two rows, for the measured and for the published results.
    """

    def change(row: Row) -> Row:
        values = {name: getattr(row, name) for name in ("measured", "published") if error_rates}
        return row._replace(**{n: None if v is None else 100 - v for n, v in values.items()})

    def ours(row: Row) -> Shown:
        text = measured(change(row), decimals, sd)
        return text[0] if row.status == PUBLISHED_ONLY else shown(text, change(row))

    def theirs(row: Row) -> Shown:
        notes = notes_of(row) if row.status == PUBLISHED_ONLY else ()
        return Text(published_text(change(row), decimals, sd), notes=notes)

    texts, grids = {"measured": ours, "published": theirs}, list[Grid]()
    for kernel in results.kernels if caption else [None]:
        places = results.places_of(kernel) if kernel else results.places
        name = caption.format(caption_of(results, kernel)) if kernel else ""
        grids.append(stacked(results, places, texts, name))
        if count:
            here, paper = (count(results, side) for side in both(results, places))
            for line, text in here.items():
                grids[-1].rows.append([line, "measured", *text])
                grids[-1].rows.append(["", "published", *paper[line]])
    return grids


# -- CPU seconds -------------------------------------------------------------------------------


def by_name(results: Results, key: Key) -> dict[str, Any]:
    """Return the mean CPU seconds per split of each stage of a job. The stage "calibration" is left
    out if its CPU time was not measured.
    """
    found = {name: results.value(key, f"seconds_{name}") for name in (*STAGES, CALIBRATION)}
    return {n: value for n, value in found.items() if n != CALIBRATION or value is not None}


def total(results: Results, key: Key, stages: Sequence[str] = ()) -> float | None:
    """Return the CPU seconds per split, summed over `stages` (by default, all stages).

    Returns None if the CPU time of a stage is unknown.
    """
    found = by_name(results, key)
    values = [found[name] for name in stages or found]
    return None if None in values else sum(values)


def total_with_search(results: Results, key: Key) -> float | None:
    """Return a machine's CPU seconds per split, plus the times of the grid searches whose
    parameters the machine reuses.
    """
    used = (key._replace(machine=machine) for machine in _used(results, key.machine))
    searches = (results.value(k, "seconds_selection") for k in used)
    values: list[Any] = [total(results, key), *searches]
    return None if None in values else sum(values)


def _used(results: Results, machine: str) -> Iterator[str]:
    """Yield the machines from which a machine takes its parameters, directly or indirectly."""
    while machine in results.plan.uses:
        machine = results.plan.uses[machine]
        yield machine


def taken_over(results: Results, machines: Sequence[str]) -> dict[str, str]:
    """For each machine whose selected parameters are reused, list the machines that use them.

    The keys and the values of the returned dict contain the labels of machines.
    """
    pairs = ((results.label(u), results.label(m)) for m in machines for u in _used(results, m))
    return {
        used: "all other machines" if len(users) == len(machines) - 1 > 3 else ", ".join(users)
        for used, users in grouped(pairs).items()
    }


def with_search_text(results: Results, machines: Sequence[str]) -> str:
    """Return sentences that name the machines whose CPU times include the grid search of another
    machine, or an empty text if there are none.
    """
    return "".join(
        f" The time of {users} includes the search of {used}, whose parameters are reused."
        for used, users in taken_over(results, machines).items()
    )


def by_stage(results: Results) -> Grid:
    """Return a table block of the CPU seconds of each stage, with one column per machine."""

    def text(key: Key) -> str:
        values = by_name(results, key).values()
        return " + ".join(map(seconds_text, values)) if None not in values else NOTHING

    calibrated = f"seconds_{CALIBRATION}" in set(results.cells.metric)
    names = [*STAGES, *[f"{CALIBRATION} (if any)"][:calibrated]]
    caption = f"CPU seconds per split: {' + '.join(names)}"
    for used, users in taken_over(results, results.columns).items():
        caption += f"; the search of {used}, whose time is in its column, also serves {users}"
    grid = by_machine(results, text, caption, kind=TIMES)
    measured = any(cell != NOTHING for row in grid.rows for cell in row[-len(results.columns) :])
    return grid if measured else replace(grid, rows=[])


# -- metrics in the configuration -----------------------------------------------------------------


CONTENT_LABELS = {**STORED, CONFUSION: "Confusion matrices"}


def label(name: str) -> str:
    """Return the heading of a metric in tables."""
    return CONTENT_LABELS[name] if name in CONTENT_LABELS else METRICS[name].label


def definitions(results: Results) -> list[str]:
    """Return the definitions of a table's metrics, one sentence per metric with a definition."""
    declared = {n: meaning for n, (_, _, meaning) in columns("splits").items() if n != METRIC}
    known = declared | {name: metric.about for name, metric in METRICS.items()}
    return [f"{label(name)}: {known[name]}." for name in results.metrics if known.get(name)]


def metric_text(row: Row) -> tuple[str, str]:
    """Return the value of a metric and its uncertainty as texts.

    If the accuracy is missing, the text is the status of the cell. If another metric is missing,
    the text is a dash.
    """
    if row.metric != METRIC and row.measured is None:
        return NOTHING, ""
    if row.metric in CERTIFIED:
        return small_text(row.measured), ""
    return measured(row, 3 if row.metric in (*METRICS, *SECONDS) else 1)


def published_rest(row: Row) -> str:
    """Return the published value as text after the measured value, or an empty text."""
    if row.published is None:
        return ""
    return f" / {published_text(row, 3 if row.metric in METRICS else None)}"


def grids(results: Results, metrics: Sequence[str]) -> Iterator[Grid]:
    """Yield one table block per metric.

    Confusion matrices have one block per table cell.
    """
    for name in metrics:
        if name == CONFUSION:
            yield from confusions(results)
        else:
            stated = results.cells.published[results.cells.metric == name].notna().any()
            caption = f"{label(name)}, measured / published" if stated else label(name)
            grid = values(results, name, metric_text, caption, rest=published_rest)
            yield replace(grid, kind=MEASUREMENT)


def confusions(results: Results) -> Iterator[Grid]:
    """Yield the confusion matrix of each table cell as a table block."""
    for key in (place._replace(machine=m) for place in results.places for m in results.columns):
        confusion = results.confusion(key)
        subject = join(key.dataset, kernel_text(key.kernel, key.degree), f"{key.size or ''}")
        rows = [[name, *map(str, line)] for name, line in confusion.items()]
        columns = (*words("true \\ predicted"), *numbers(*confusion))
        caption = f"Confusion matrix of {results.label(key.machine)}, {subject}"
        yield Grid(columns, rows, f"{caption}: test rows of all splits")


# -- differences between machines ----------------------------------------------------------------

BETTER, WORSE = "+", "−"


def signed(difference: float, decimals: int = 2) -> str:
    """Return a difference as text with its sign."""
    return f"{difference:+.{decimals}f}".replace("-", WORSE)


def direction(difference: float) -> str:
    """Return `BETTER` if a significant difference is positive, else `WORSE`."""
    return BETTER if difference > 0 else WORSE


# -- below the results of every table --------------------------------------------------------------

#: Explanation of the texts in the block of selected parameters.
CHOICES = "median over splits and pairs of classes (min, max: selections at the ends of the grid)"


def search_space(results: Results) -> Grid:
    """Return a table block of the parameter grids, with one row per machine and parameter."""
    rows = once(grid_rows(results))
    return Grid(words("machine", "parameter", "grid"), rows, "Parameter grids", SETTINGS)


def chosen_text(results: Results, key: Key) -> str:
    """Return the selected parameters of a cell as text, or a dash if none was selected."""
    rows = selected(finished(results.by_cell.get(key, ())))
    return ", ".join(row["text"] for row in rows) or NOTHING


def parameters(results: Results) -> Grid:
    """Return a table block of the parameters that grid search selected for each machine."""
    texts = {key: chosen_text(results, key) for key in results.keys}
    choosers = {key.machine for key, text in texts.items() if text != NOTHING}
    machines = [machine for machine in results.columns if machine in choosers]
    places, caption = results.places if machines else (), f"Selected parameters: {CHOICES}"
    cell: Callable[[Key], str] = lambda key: texts.get(key, NOTHING)  # noqa: E731
    return by_machine(results, cell, caption, places=places, machines=machines, kind=SETTINGS)


def statuses_text(results: Results, machine: str) -> str:
    """Return the numbers of the binary classifiers of a machine by status, the worst first."""
    statuses = counts(results.by_machine.get(machine, ()), "fits").items()
    ordered = sorted(statuses, key=lambda item: -SEVERITY.index(Status(item[0])))
    limited = results.value(all_fits(machine), "at_coefficient_limit") or 0
    more = f"({limited:.0f} at the coefficient limit)" if limited else ""
    return join(counts_text(ordered), more)


def fits_grid(results: Results) -> Grid:
    """Return a table block on the trained binary classifiers of each machine: statuses, algorithms,
    duality gaps, and constraint violations.
    """
    done = results.by_machine
    found = {machine: done[machine] for machine in results.configured if done.get(machine)}
    algorithms = {machine: routes_text(counts(rows, "routes")) for machine, rows in found.items()}
    routes, lines = any(algorithms.values()), list[list[Shown]]()
    for machine in found:
        fits = {n: results.value(all_fits(machine), n) for n in (*CERTIFIED, *TOTALS)}
        names = ("gap_tolerance", "median_gap", "worst_gap", "worst_violation")
        texts, above = [small_text(fits[name]) for name in names], fits["gaps_above_tolerance"]
        texts.insert(3, NOTHING if above is None else f"{above:.0f} of {fits['n_gaps']:.0f}")
        route = [algorithms[machine] or NOTHING][:routes]
        lines.append([results.label(machine), statuses_text(results, machine), *route, *texts])
    heads = words("machine", "fits", *["route"][:routes])
    ends = ("median gap", "largest gap", "gaps above tolerance", "largest violation")
    caption = "Certificates of all fits: relative duality gaps and constraint violations"
    return Grid((*heads, *numbers("tolerance", *ends)), lines, caption, CERTIFICATES)


# -- bold and signs --------------------------------------------------------------------------------


def emphasized(results: Results, grids: Iterable[Grid]) -> tuple[list[Grid], list[str]]:
    """Return the blocks with the best printed mean of each place and metric in bold, and a sign at
    machines that are worse than the best by more than chance; and sentences that explain them.

    Cells with missing splits have neither, nor have the cells of a place with a single machine, nor
    metrics of `STORED` other than accuracies and errors.
    """
    grids = list(grids)
    cells = [c for g in grids for row in g.rows for c in row if isinstance(c, Text) and c.row]
    unranked = {*STORED} - {*COUNTED}
    cells = [c for c in cells if c.row.measured is not None and c.row.metric not in unranked]
    texts = {(c.row.key, c.row.metric): c.value for c in cells}
    places = grouped(((key._replace(machine=""), metric), key) for key, metric in texts)
    bold, worse, left_out = set(), set(), list[Key]()
    found: dict[Key, list[Difference]] = {}
    for (place, metric), keys in places.items():
        if len(keys) < 2:
            continue
        partial = incomplete(results, keys, metric)
        left_out += partial
        whole = [key for key in keys if key not in partial]
        # the compared values come from the frame, since a printed value may be transformed, for
        # example to an error rate
        scores = {key: sign_of(metric) * (results.value(key, metric) or 0.0) for key in whole}
        if len(whole) < 2:
            continue
        best = max(whole, key=scores.__getitem__)
        bold |= {(key, metric) for key in whole if texts[key, metric] == texts[best, metric]}
        known = {key: difference_of(results, key, best, metric) for key in whole if key != best}
        sign = 1 if metric in COUNTED else sign_of(metric)
        to_best = {key: replace(own, d=sign * own.d) for key, own in known.items() if own}
        worse |= {(key, metric) for key in worse_than_best(to_best)} - bold
        found.setdefault(place, []).extend(to_best.values())

    def cell(cell: Shown) -> Shown:
        if not isinstance(cell, Text) or cell.row is None:
            return cell
        at = cell.row.key, cell.row.metric
        return replace(cell, bold=at in bold, sign=WORSE_THAN_BEST if at in worse else "")

    made = [grid.mapped(cell) for grid in grids]
    lost = [f"Not compared, as splits are missing: {about(results, left_out)}."] if left_out else []
    return made, [*_explained(found, bool(bold), bool(worse)), *lost]


def _explained(found: Mapping[Key, Sequence[Difference]], bold: bool, worse: bool) -> list[str]:
    """Return sentences that explain bold type and signs, with the detectable differences."""
    tested = {place: [own for own in all_ if own.tested] for place, all_ in found.items()}
    tested = {place: own for place, own in tested.items() if own}
    if not bold:
        return []
    if not tested:
        hows = sorted({str(own.how) for all_ in found.values() for own in all_})
        none = [f"No test of differences is possible: {', '.join(hows)}."] if hows else []
        return [BEST_IS_BOLD, *none]
    sizes = [own.detectable(len(all_) + 1) for all_ in tested.values() for own in all_]
    varied = [size for size in sizes if size > 0] or sizes  # 0: equal in all splits
    ends = dict.fromkeys(f"{size:.2g}" for size in (min(varied), max(varied)))
    by = " by data set and machine" if len(tested) > 1 else " by machine"
    untested = len(found) - len(tested)
    more = f"; {untested} of {len(found)} rows have no test" if untested else ""
    sign = (
        f"{WORSE_THAN_BEST} worse than the best of the row by more than chance ({100 * LEVEL:g} % "
        "per row of the table; the standard error counts each row of the data set once and the "
        "variation over training sets)."
    )
    same = "No tested difference from the best machine in this table is larger than chance."
    return [
        *([] if worse else [same]),
        BEST_IS_BOLD,
        *([sign] if worse else []),
        f"Difference from the best that would be found with probability {POWER:g}: "
        f"{' to '.join(ends)}{by * (len(ends) > 1)}{more}.",
    ]
