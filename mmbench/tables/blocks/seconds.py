"""CPU seconds of a job's stages."""

from collections.abc import Sequence

from mmbench.jobs.store import Key
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
