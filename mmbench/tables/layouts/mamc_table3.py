"""Table 3 of the MAMC paper: CPU seconds a split as ratios to the MAMC's.

Seconds of selection, training and test together. Those of the paper are another computer's and
another program's, so ratios are compared: measured here / published.
"""

from mmbench.jobs.store import Key
from mmbench.tables.blocks import total
from mmbench.tables.compose import compose
from mmbench.tables.model import NOTHING, Column, Grid, Table, seconds_text
from mmbench.tables.sheet import Sheet
from mmbench.tables.statistics import best_and_worst

PUBLISHED = "mamc_table3"
MACHINES = ("mamc_bs", "mamc_bsg", "mamc_b", "mamc", "emamc", "svm")
#: The machine whose seconds are the unit.
UNIT = "mamc"

#: Seconds by machine, on one data set.
Line = dict[str, float]


def layout(sheet: Sheet) -> Table:
    """Arrange ratios of CPU seconds, and count the shortest and longest times."""
    sheet.arrange(MACHINES)
    return compose(
        sheet,
        "CPU seconds a split, as ratios to the MAMC's (MAMC paper, table 3)",
        [_ratios(sheet)],
        "Selection, training and test together, on one thread; mean over splits.",
        "Published ratios: of the paper's seconds on its own computer. "
        f"{NOTHING} the cell is lost in the text of the paper, or was not run.",
        "Shortest/longest: data sets on which the machine takes the least and the most time.",
    )


def _ratios(sheet: Sheet) -> Grid:
    group = "Ratio: measured / published"
    columns = (
        *sheet.columns("data", machines=()),
        Column(f"{sheet.label(UNIT)} (s)"),
        *sheet.columns(group=group),
    )
    ours = {place: _measured(sheet, place) for place in sheet.places}
    rows = []
    for place, seconds in ours.items():
        printed = _published(sheet, place.dataset)
        texts = [f"{_ratio(seconds, m)} / {_ratio(printed, m)}" for m in sheet.machines]
        rows.append([sheet.name(place), seconds_text(seconds.get(UNIT)), *texts])
    counted = _counts([line for line in ours.values() if len(line) == len(sheet.machines)])
    theirs = _printed_counts(sheet)
    texts = [f"{counted.get(m, NOTHING)} / {theirs.get(m, NOTHING)}" for m in sheet.machines]
    rows.append(["shortest-longest", "", *texts])
    return Grid(columns, rows, group)


def _measured(sheet: Sheet, place: Key) -> Line:
    times = {m: total(sheet, place._replace(machine=m)) for m in sheet.machines}
    return {machine: seconds for machine, seconds in times.items() if seconds is not None}


def _published(sheet: Sheet, dataset: str) -> Line:
    """Return the paper's seconds by machine, lost cells left out."""
    rows = [row for row in sheet.published_of(dataset) if row["metric"] == "seconds"]
    return {row["machine"]: row["value"] for row in rows if row["value"] is not None}


def _ratio(seconds: Line, machine: str) -> str:
    if machine not in seconds or not seconds.get(UNIT):
        return NOTHING
    ratio = seconds[machine] / seconds[UNIT]
    return f"{ratio:.{1 if ratio < 100 else 0}f}"


def _counts(lines: list[Line]) -> dict[str, str]:
    """Return "shortest-longest" by machine; short times are the good ones."""
    counts = best_and_worst([{m: -s for m, s in line.items()} for line in lines], decimals=None)
    return {machine: f"{best}-{worst}" for machine, (best, worst) in counts.items()}


def _printed_counts(sheet: Sheet) -> dict[str, str]:
    """Return the paper's own counts; lost cells do not allow to count them again."""
    values = {(row["machine"], row["metric"]): row["value"] for row in sheet.facts.published}
    return {
        machine: f"{value:.0f}-{values[machine, 'worst_count']:.0f}"
        for (machine, metric), value in values.items()
        if metric == "best_count"
    }
