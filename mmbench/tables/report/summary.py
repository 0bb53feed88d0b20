"""An experiment in one line: what was met, what failed, what it took, when and with what it ran."""

from collections.abc import Iterable
from dataclasses import dataclass

from mmbench.errors import FINISHED, SEVERITY, Status
from mmbench.tables.blocks.seconds import CALIBRATION, STAGES
from mmbench.tables.records import Experiment
from mmbench.tables.report.view import View

#: Statuses of a cell that say nothing against it.
SOUND = (*FINISHED, Status.UNCERTIFIED)
RUN_WITH = "Run with "


@dataclass(frozen=True)
class Summary:
    """What the overview says of an experiment."""

    #: Cells that were to run; of these compared with a published value; of these met.
    n_cells: int
    n_compared: int
    n_in_band: int
    #: Cells in which some split failed or was not run.
    n_incomplete: int
    #: Cells in which a job failed.
    n_failed: int
    #: Complete cells with a fit that is not optimal.
    n_doubtful: int
    #: Of all fits and jobs.
    worst_status: str
    #: The largest relative gap of machines of which one was asked, and what was asked; where that
    #: is not known, the largest of all that did not end by a rule of their own.
    gap: float | None
    gap_tolerance: float | None
    #: Gaps larger than asked.
    n_above: int | None
    #: The largest.
    violation: float | None
    #: Of selection, training and test, all splits together.
    cpu_seconds: float
    #: Days, in UTC; empty where they are not known.
    started: str
    finished: str
    computers: tuple[str, ...]


def summarize(view: View) -> Summary:
    """Return the summary of an experiment, or of the table of one."""
    compared = [row.in_band for row in view.rows if row.in_band is not None]
    whole = (row for row in view.rows if row.key not in view.incomplete)
    doubtful = [row for row in whole if row.status not in SOUND]
    above = list(_values(view, "gaps_above_tolerance"))
    started, finished = _days(view)
    gap, asked = _largest_gap(view)
    timed = {f"seconds_{stage}" for stage in (*STAGES, CALIBRATION)}
    return Summary(
        n_cells=len(view.rows),
        n_compared=len(compared),
        n_in_band=sum(compared),
        n_incomplete=len(view.incomplete),
        n_failed=sum(bool(cell.failed) for cell in view.cells.values()),
        n_doubtful=len(doubtful),
        worst_status=_worst(row.status for row in view.rows),
        gap=gap,
        gap_tolerance=asked,
        n_above=int(sum(above)) if above else None,
        violation=max(_values(view, "worst_violation"), default=None),
        cpu_seconds=sum(
            row.measured * (row.n or 0)
            for row in view.sheet.rows
            if row.metric in timed and row.measured is not None
        ),
        started=started,
        finished=finished,
        computers=tuple(
            dict.fromkeys(
                note.removeprefix(RUN_WITH) for note in remarks(view) if note.startswith(RUN_WITH)
            )
        ),
    )


def remarks(view: View) -> tuple[str, ...]:
    """Return what is to be said of a whole run: of a reference table, as its text says it."""
    if isinstance(view.experiment, Experiment):
        return view.sheet.facts.remarks
    lines = (view.experiment.text or "").splitlines()
    return (*view.experiment.remarks, *(line[2:] for line in lines if line.startswith("- ")))


def _largest_gap(view: View) -> tuple[float | None, float | None]:
    by_rule = {row.key for row in view.rows if row.status == Status.STOPPED_BY_RULE}
    keys = [key for key in view.keys if key not in by_rule]
    cells = [[view.sheet.value(k, m) for m in ("worst_gap", "gap_tolerance")] for k in keys]
    known = [(gap, asked) for gap, asked in cells if gap is not None]
    asked_of = [(gap, asked) for gap, asked in known if asked is not None]
    return max(asked_of or known, key=lambda cell: cell[0], default=(None, None))


def _values(view: View, metric: str) -> Iterable[float]:
    values = (view.sheet.value(key, metric) for key in view.keys)
    return (value for value in values if value is not None)


def _worst(statuses: Iterable[str]) -> str:
    """Return the gravest status of a fit or job; empty where nothing was run."""
    found = set(statuses)
    known = [str(status) for status in SEVERITY if status in found]
    return known[-1] if known else ""


def _days(view: View) -> tuple[str, str]:
    if not isinstance(view.experiment, Experiment):
        return "", ""
    records = [record for record in view.experiment.records if record.started]
    if not records:
        return "", ""
    return min(r.started for r in records)[:10], max(r.finished for r in records)[:10]
