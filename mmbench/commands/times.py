"""How long jobs will take, by what jobs like them took: here, in a reference or a smoke run."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from mmbench.commands.workload import n_searched, sizes_of
from mmbench.config.smoke import SUFFIX
from mmbench.errors import UserError
from mmbench.jobs.job import Job
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key, RecordStore, key_of
from mmbench.resources import REFERENCE
from mmbench.tables.results import CSV, read_reference

RECORDS = "earlier records"
REFERENCE_RUN = "the reference run, on its computer"
SMOKE_RUN = "the smoke run, scaled: most often too much, up to ten times"
#: Exponents of the number of rows. Large trainings grow nearly quadratically, but much of the time
#: of small ones is fixed: from smoke runs to full USPS and MNIST 1.5 gives 1 to 15 times too much.
TRAINING_GROWTH, TEST_GROWTH = 1.5, 1.0


class Times:
    """Expected seconds of the jobs of an experiment.

    Parameters
    ----------
    name : str
        The experiment.
    folder : Path
        Its results folder; that of its smoke version lies beside it.

    Attributes
    ----------
    sources : dict of str to None
        Where the answers came from so far.
    """

    def __init__(self, name: str, folder: Path):
        here, smoke = _done(folder), _done(folder.with_name(folder.name + SUFFIX))
        self._here = _mean_seconds(here)
        self._reference = _reference_seconds(REFERENCE / name)
        self._smoke: dict[Key, list[Record]] = defaultdict(list)
        for record in smoke:
            self._smoke[_coarse(key_of(record.job))].append(record)
        self.sources: dict[str, None] = {}

    def seconds(self, job: Job) -> float | None:
        """Return the expected seconds of a job; None where nothing like it was ever run."""
        key = key_of(job)
        for source, known in ((RECORDS, self._here), (REFERENCE_RUN, self._reference)):
            if key in known:
                self.sources[source] = None
                return known[key]
        if records := self._smoke.get(_coarse(key)):
            self.sources[SMOKE_RUN] = None
            return fmean(_scaled(record, job) for record in records)
        return None


def _done(folder: Path) -> list[Record]:
    try:
        records, _ = RecordStore(folder).records()
    except UserError:  # no run has made the folder yet
        return []
    return [record for record in records if record.done]


def _mean_seconds(records: Iterable[Record]) -> dict[Key, float]:
    seconds: dict[Key, list[float]] = defaultdict(list)
    for record in records:
        seconds[key_of(record.job)].append(sum(record.wall_seconds.values()))
    return {key: fmean(values) for key, values in seconds.items()}


def _reference_seconds(folder: Path) -> dict[Key, float]:
    """Return the seconds of a job of each cell of a reference table."""
    seconds: dict[Key, float] = defaultdict(float)
    for row in read_reference(folder, None).rows if (folder / CSV).is_file() else ():
        if row.metric.startswith("seconds_") and row.measured is not None:
            seconds[row.key] += row.measured
    return dict(seconds)


def _coarse(key: Key) -> Key:
    """Leave out what the smoke version has less of: degrees and training sizes."""
    return key._replace(degree=None, size=None)


def _scaled(record: Record, job: Job) -> float:
    """Return the seconds of a job by a record of the same machine on fewer rows and points."""
    growth = sizes_of(job).n_train / record.split["n_train"]
    points = n_searched(job) / max(1, n_searched(record.job))
    seconds = {stage: record.wall_seconds.get(stage, 0.0) for stage in ("selection", "training")}
    training = (points * seconds["selection"] + seconds["training"]) * growth**TRAINING_GROWTH
    return training + record.wall_seconds.get("test", 0.0) * growth**TEST_GROWTH
