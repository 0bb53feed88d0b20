"""CPU seconds of a job's stages."""

from collections.abc import Sequence

from mmbench.jobs.plan import Key
from mmbench.tables.model import NOTHING, Column, Grid
from mmbench.tables.sheet import Sheet
from mmbench.tables.text import kernel_text, seconds_text

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
