"""Parts of tables that several layouts share: accuracies, counts, seconds, tests, certificates."""

from collections.abc import Iterable, Sequence
from functools import partial
from statistics import fmean

from mmbench.jobs.store import Key
from mmbench.tables.measures import CONFUSION, ROW_NAMES, Confusion
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
from mmbench.tables.records import PUBLISHED_ONLY
from mmbench.tables.rows import Fits, Row
from mmbench.tables.sheet import KernelKey, Sheet, Write
from mmbench.tables.statistics import Ranks, Sample, best_and_worst, rank_machines, win_tie_loss

STAGES = ("selection", "training", "test")

#: A stage of the machines whose probabilities are calibrated.
CALIBRATION = "calibration"


def stages(sheet: Sheet, key: Key, names: tuple[str, ...] = STAGES) -> list[float | None]:
    """Return the CPU seconds of some stages, mean over splits."""
    return [sheet.value(key, f"seconds_{name}") for name in names]


def by_name(sheet: Sheet, key: Key) -> dict[str, float | None]:
    """Return the CPU seconds of all stages, those of a calibration where there was one."""
    found = dict(zip(STAGES, stages(sheet, key), strict=True))
    calibration = sheet.value(key, f"seconds_{CALIBRATION}")
    return found if calibration is None else {**found, CALIBRATION: calibration}


def total(sheet: Sheet, key: Key, names: tuple[str, ...] = ()) -> float | None:
    """Return the CPU seconds of some stages or all together, None where one is not known."""
    values = stages(sheet, key, names) if names else list(by_name(sheet, key).values())
    parts = [part for part in values if part is not None]
    return sum(parts) if len(parts) == len(values) else None


def total_with_search(sheet: Sheet, key: Key) -> float | None:
    """Return the CPU seconds of all stages and of the searches whose parameters are taken over.

    None where one is not known.
    """
    used = [key._replace(machine=machine) for machine in _used(sheet, key.machine)]
    parts = [total(sheet, key), *(total(sheet, other, ("selection",)) for other in used)]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _used(sheet: Sheet, machine: str) -> list[str]:
    """Return the machine whose parameters one takes over, the one that it uses, and so on."""
    used = []
    while machine in sheet.plan.uses:
        machine = sheet.plan.uses[machine]
        used.append(machine)
    return used


def taken_over(sheet: Sheet, machines: Sequence[str]) -> dict[str, str]:
    """Return which machines take over the parameters of another, by labels of both.

    Parameters
    ----------
    sheet : Sheet
    machines : sequence of str

    Returns
    -------
    dict of str to str
        The label of the machine that searched, and those of all that use it.
    """
    users: dict[str, list[str]] = {}
    for machine in machines:
        for used in _used(sheet, machine):
            users.setdefault(sheet.label(used), []).append(sheet.label(machine))
    return {used: ", ".join(own) for used, own in users.items()}


def with_search_text(sheet: Sheet, machines: Sequence[str]) -> str:
    """Say of which machines `total_with_search` counts another's search; empty where of none."""
    return "".join(
        f" Those of {users} include the search of {used}, whose parameters they take over."
        for used, users in taken_over(sheet, machines).items()
    )


def by_stage(sheet: Sheet) -> Grid:
    """Return a line a place and a column a machine, with the seconds of every stage."""
    rows = [
        [place.dataset, *place_heads(place), *(_cell(sheet, place, m) for m in sheet.machines)]
        for place in sheet.places
    ]
    measured = any(cell != NOTHING for row in rows for cell in row[-len(sheet.machines) :])
    calibrated = any(row.metric == f"seconds_{CALIBRATION}" for row in sheet.rows)
    names = [*STAGES, *[f"{CALIBRATION} where asked for"][:calibrated]]
    caption = f"CPU seconds a split: {' + '.join(names)}"
    for used, users in taken_over(sheet, sheet.machines).items():
        caption += f"; the search of {used}, taken over by {users}, counts there alone"
    return Grid(place_columns(sheet, "data set"), rows if measured else [], caption)


def _cell(sheet: Sheet, place: Key, machine: str) -> str:
    values = by_name(sheet, place._replace(machine=machine)).values()
    return " + ".join(map(seconds_text, values)) if None not in values else NOTHING


def place_columns(
    sheet: Sheet, head: str, machines: Sequence[str] | None = None
) -> tuple[Column, ...]:
    """Return the columns of a grid whose lines name kernel and, where there are several, size."""
    sized = any(place.size is not None for place in sheet.places)
    words = sheet.columns(head, "kernel", machines=())
    return (*words, *[Column("rows")][:sized], *sheet.columns(machines=machines))


def place_heads(place: Key) -> list[str]:
    """Return what a line's head says beside the data set."""
    size = [] if place.size is None else [str(place.size)]
    return [kernel_text(place.kernel, place.degree), *size]


METRIC = "accuracy_pct"

one_decimal: Write = partial(measured_text, decimals=1)
published_one_decimal: Write = partial(published_text, decimals=1)


def paired(
    sheet: Sheet,
    places: Sequence[Key],
    measured: Write = one_decimal,
    published: Write = published_one_decimal,
    caption: str = "",
) -> Grid:
    """Return two lines a place, accuracies measured here and those of the paper.

    Parameters
    ----------
    sheet : Sheet
    places : sequence of Key
    measured, published : callable
        How the two are written.
    caption : str
        Of a block of one kernel: the lines do not name it.
    """
    rows: list[list[str]] = []
    for place in places:
        found = sheet.line(place, METRIC)
        head = sheet.head(place, kernel=not caption)
        rows.append([head, "measured", *(_measured(sheet, row, measured) for row in found)])
        rows.append(["", "published", *(_published(sheet, row, published) for row in found)])
    return Grid(sheet.columns("data", ""), rows, caption)


def _measured(sheet: Sheet, row: Row | None, write: Write) -> str:
    ran = row is not None and row.status != PUBLISHED_ONLY
    return sheet.marked(write(row), row) if ran else write(row)


def _published(sheet: Sheet, row: Row | None, write: Write) -> str:
    """Return the paper's value; what is to be said of it alone is cited beside it."""
    alone = row is not None and row.status == PUBLISHED_ONLY
    return join(write(row), sheet.cite(row) if alone else "")


def beside(sheet: Sheet, row: Row | None, decimals: int | None = None) -> str:
    """Return a cell with both values, ``measured / published``, its mark and footnotes."""
    return sheet.marked(f"{measured_text(row, decimals)} / {published_text(row)}", row)


#: One sample a machine, for one data set.
Line = dict[str, Sample]


def measured_lines(sheet: Sheet, places: Iterable[Key], metric: str = METRIC) -> list[Line]:
    """Return what was measured at some places, as far as machines have results there."""
    return [
        {
            machine: Sample(row.measured, row.sd or 0.0, row.n or 0)
            for machine, row in zip(sheet.machines, sheet.line(place, metric), strict=True)
            if row is not None and row.measured is not None
        }
        for place in places
    ]


def published_lines(sheet: Sheet, places: Iterable[Key]) -> list[Line]:
    """Return what the paper prints at some places."""
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
    """Return the lines measured and published."""
    return {
        "measured": measured_lines(sheet, places),
        "published": published_lines(sheet, places),
    }


def best(lines: Iterable[Line], machines: Sequence[str], decimals: int) -> dict[str, tuple]:
    """Count the lines on which each machine is best and worst, of those that have all machines."""
    whole = [{m: sample.mean for m, sample in line.items()} for line in lines]
    return best_and_worst([line for line in whole if len(line) == len(machines)], decimals)


def average(lines: Sequence[Line], machine: str) -> str:
    """Return the mean over all lines; a machine without a result on some has none."""
    means = [line[machine].mean for line in lines if machine in line]
    return f"{fmean(means):.2f}" if means and len(means) == len(lines) else NOTHING


def against(lines: Iterable[Line], reference: str, machine: str) -> str:
    """Count on how many lines a reference wins, ties and loses against a machine."""
    pairs = [
        (line[reference], line[machine])
        for line in lines
        if reference in line and machine in line and min(line[reference].n, line[machine].n) > 1
    ]
    return str(win_tie_loss(pairs)) if pairs and machine != reference else NOTHING


#: Of values between 0 and 1, and of per cent.
DECIMALS, DECIMALS_PCT = 3, 1


def grids(sheet: Sheet) -> list[Grid]:
    """Return a grid for each metric that is asked for; confusion matrices one a machine."""
    found = []
    for name in sheet.metrics:
        found += confusions(sheet) if name == CONFUSION else [_grid(sheet, name)]
    return found


def label(name: str) -> str:
    """Return how tables call a metric."""
    from mmbench.selection.metrics import METRICS

    if name == CONFUSION:
        return "Confusion matrices"
    return f"{METRICS[name].label} (%)" if name in ROW_NAMES else METRICS[name].label


def row_name(name: str) -> str:
    """Return what the long table calls a metric."""
    return ROW_NAMES.get(name, name)


def smaller_is_better(name: str) -> bool:
    """Return whether the best value of a metric is the smallest."""
    from mmbench.selection.metrics import METRICS

    return METRICS[name].smaller_is_better


def cell(sheet: Sheet, key: Key, name: str) -> str:
    """Return the text of a value, without footnotes."""
    return _text(sheet.row(key, row_name(name)), _decimals(name))


def definitions(sheet: Sheet) -> list[str]:
    """Return what each metric is, a line each."""
    from mmbench.selection.metrics import METRICS

    shown = [METRICS[name] for name in sheet.metrics if name in METRICS]
    return [f"{metric.label}: {metric.about}." for metric in shown if metric.about]


def _grid(sheet: Sheet, name: str) -> Grid:
    metric, decimals = row_name(name), _decimals(name)
    rows = [
        [
            sheet.head(place, name=place.dataset),
            *place_heads(place),
            *(sheet.marked(_text(row, decimals), row) for row in sheet.line(place, metric)),
        ]
        for place in sheet.places
    ]
    return Grid(place_columns(sheet, "data set"), rows, label(name))


def _decimals(name: str) -> int:
    return DECIMALS_PCT if name in ROW_NAMES else DECIMALS


def _text(row: Row | None, decimals: int) -> str:
    """Return a value; nothing where records lack what it is computed from."""
    if row is not None and row.measured is None and row.metric not in ROW_NAMES.values():
        return NOTHING
    return measured_text(row, decimals)


def confusions(sheet: Sheet) -> list[Grid]:
    """Return the confusion matrices, one a place and machine."""
    keys = (place._replace(machine=machine) for place in sheet.places for machine in sheet.machines)
    found = sheet.facts.measures.confusion
    return [_matrix(sheet, key, found[key]) for key in keys if key in found]


def _matrix(sheet: Sheet, key: Key, found: Confusion) -> Grid:
    where = join(key.dataset, kernel_text(key.kernel, key.degree), f"{key.size or ''}")
    caption = f"Confusion matrix of {sheet.label(key.machine)}, {where}: test rows of all splits"
    columns = (Column("true \\ predicted", align="left"), *map(Column, found.labels))
    pairs = zip(found.labels, found.counts, strict=True)
    return Grid(columns, [[name, *map(str, counts)] for name, counts in pairs], caption)


ACCURACY = "accuracy"
BETTER, WORSE = "+", "−"


def with_results(sheet: Sheet, metric: str = ACCURACY) -> list[str]:
    """Return the machines that have a result somewhere."""
    lines = measured_lines(sheet, sheet.places, row_name(metric))
    found = {machine for line in lines for machine in line}
    return [machine for machine in sheet.machines if machine in found]


def ranks_of(sheet: Sheet, kernel: KernelKey, metric: str = ACCURACY) -> Ranks:
    """Return the ranks of the machines with results, over the data sets that all of them have.

    One kernel at a time: a data set with another kernel is no independent data set.

    Raises
    ------
    ValueError
        If there are too few machines or data sets.
    """
    lines = measured_lines(sheet, sheet.places_of(kernel), row_name(metric))
    machines = [machine for machine in sheet.machines if any(machine in line for line in lines)]
    whole = [line for line in lines if len(line) == len(machines)]
    sign = -1 if smaller_is_better(metric) else 1
    decimals = 2 if metric == ACCURACY else 4
    return rank_machines([{m: sign * line[m].mean for m in machines} for line in whole], decimals)


def split_gaps(
    sheet: Sheet, place: Key, machine: str, reference: str, metric: str = ACCURACY
) -> list[float]:
    """Return how much better a machine is than another on every split that both have done."""
    keys = [place._replace(machine=name) for name in (machine, reference)]
    if metric == ACCURACY:
        ours, theirs = (sheet.facts.by_split.get(key, {}) for key in keys)
    else:
        ours, theirs = (sheet.facts.measures.values.get((key, metric), {}) for key in keys)
    both = sorted(ours.keys() & theirs.keys())
    sign = -1 if smaller_is_better(metric) else 1
    return [sign * (ours[split] - theirs[split]) for split in both]


def dataset_gaps(
    sheet: Sheet, kernel: KernelKey, machine: str, reference: str, metric: str = ACCURACY
) -> list[float]:
    """Return how much better the mean of a machine is than another's on every data set."""
    lines = measured_lines(sheet, sheet.places_of(kernel), row_name(metric))
    both = [line for line in lines if machine in line and reference in line]
    sign = -1 if smaller_is_better(metric) else 1
    return [sign * (line[machine].mean - line[reference].mean) for line in both]


def test_to_train(sheet: Sheet, place: Key) -> float:
    """Return the rows tested on over the rows trained on, 0 where they are not known."""
    sizes = sheet.facts.sizes.get(place.dataset, {})
    return sizes["n_test"] / sizes["n_train"] if {"n_test", "n_train"} <= sizes.keys() else 0.0


def signed(difference: float, decimals: int = 2) -> str:
    """Return a difference with its sign, as printed."""
    return f"{difference:+.{decimals}f}".replace("-", WORSE)


def direction(difference: float) -> str:
    """Return whether a significant difference is for or against a machine."""
    return BETTER if difference > 0 else WORSE


#: What the words of a choice mean.
CHOICES = "median over splits and pairs; (min, max: how many choices lie at an end of the grid)"


def parameters(sheet: Sheet) -> Grid:
    """Return what each machine has selected from its own grid, medians over the choices."""
    chosen = [
        machine
        for machine in sheet.machines
        if any(sheet.facts.selected.get(p._replace(machine=machine)) for p in sheet.places)
    ]
    rows = []
    for place in sheet.places if chosen else []:
        found = (sheet.facts.selected.get(place._replace(machine=m), ()) for m in chosen)
        texts = [", ".join(map(str, one)) or NOTHING for one in found]
        rows.append([place.dataset, *place_heads(place), *texts])
    caption = f"Selected parameters: {CHOICES}"
    return Grid(place_columns(sheet, "data set", chosen), rows, caption)


def certificates(sheet: Sheet) -> Grid:
    """Return how the fits of each machine ended, their gaps and the largest violation."""
    words = sheet.columns("machine", "fits", machines=())
    numbers = ("gap asked", "median gap", "largest gap", "gaps above", "largest violation")
    found = ((m, sheet.facts.fits[m]) for m in sheet.configured if m in sheet.facts.fits)
    rows = [[sheet.label(machine), fits.ended(), *_figures(fits)] for machine, fits in found]
    caption = "Certificates of all fits: relative duality gaps, violations of constraints"
    return Grid((*words, *map(Column, numbers)), rows, caption)


def _figures(fits: Fits) -> list[str]:
    above = NOTHING if fits.n_above is None else f"{fits.n_above} of {len(fits.gaps)}"
    gaps = fits.gap_tolerance, fits.median_gap, fits.worst_gap
    return [*map(_short, gaps), above, _short(fits.worst_violation)]


def _short(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1e}"
