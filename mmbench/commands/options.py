"""The options of a run, and the type of its experiments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError, did_you_mean, listed, visible
from mmbench.jobs.limits import Limits, parse_limits
from mmbench.results.unpack import is_bundle

if TYPE_CHECKING:
    from mmbench.config.model import Config

    #: A YAML file, a name, the content of a YAML file, or a checked configuration.
    Experiment = str | Path | Mapping[str, Any] | Config

__all__ = ["Options"]

Say = Callable[[str], object]


@dataclass(frozen=True)
class Options:
    """Options of a run.

    Parameters
    ----------
    results : path, optional
        Folder in which a results folder per experiment is created. By default, an experiment that
        is given by its results folder continues in this folder, and the folder of all other
        experiments is ``results``.
    store : path
        Local store of data files.
    mirror : str, optional
        Folder or URL that holds data files.
    jobs : int, optional
        Number of parallel processes. The default number is the number of usable physical cores.
    only : sequence of str
        Data sets and machines to run, as ``dataset=NAME`` and ``machine=NAME``; all if empty.
    smoke : bool
        Whether to run a quick version of the experiment, with few splits and grid points.
    set : sequence of str
        Replacements of values in the configurations, as ``KEY=VALUE``.
    strict : bool
        Whether the exit code is 1 if a solution is not optimal.
    time_limit, memory_limit : str, optional
        Limits of each job, such as ``"1h"`` and ``"8 GB"``. The default limits are the limits in
        the configuration.
    by_machine : bool
        Whether to run the machines one after the other, and to print each machine's mean accuracy.
    scheduler : str, optional
        Address of a Dask scheduler, "local" for a Dask cluster on this computer, or "slurm",
        "pbs", "sge" or "lsf" for a batch system. The default is the cluster in the configuration.
    rerun : {"changed"}, optional
        If "changed", a finished job runs again if the source code of its machine has changed.
    sample : int, optional
        Number of jobs of each experiment that are drawn at random, from the seed `sample_seed`, and
        run. Jobs from which they take parameters are run, too.
    sample_seed : int
        Seed of the sample.
    trusted : bool
        Whether the experiments of a bundle may use classes of other packages.

    Raises
    ------
    UserError
        If a limit, `jobs`, `sample` or `rerun` is not valid.
    """

    results: str | Path | None = None
    store: str | Path = "datasets"
    mirror: str | None = None
    jobs: int | None = None
    only: Sequence[str] = ()
    smoke: bool = False
    set: Sequence[str] = ()
    strict: bool = False
    time_limit: str | None = None
    memory_limit: str | None = None
    scheduler: str | None = None
    by_machine: bool = False
    rerun: str | None = None
    sample: int | None = None
    sample_seed: int = 0
    trusted: bool = False

    def __post_init__(self) -> None:
        if self.sample is not None and not (isinstance(self.sample, int) and self.sample >= 1):
            raise UserError(f"--sample {self.sample}: must be a number of jobs, 1 or more")
        if self.rerun not in (None, "changed"):
            raise UserError(f"--rerun {self.rerun}: must be 'changed'")
        if self.jobs is not None and not (isinstance(self.jobs, int) and self.jobs >= 1):
            raise UserError(f"--jobs {self.jobs}: must be a number of processes, 1 or more")
        parse_limits(self.time_limit, self.memory_limit)
        for name in ("only", "set"):  # a single text stands for a list of one text
            if isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, (text,))

    @property
    def limits(self) -> Limits:
        """Time limit of a job in seconds, and memory limit in bytes."""
        return parse_limits(self.time_limit, self.memory_limit)

    @property
    def slots(self) -> int:
        """Number of worker processes.

        The default is one process per physical core that this process may use. Two processes on the
        same core would not be faster than one process, since they would share the arithmetic units
        of the core.
        """
        import joblib
        import psutil

        usable = joblib.cpu_count()  # limited by CPU affinity and by the CPU quota of a container
        return self.jobs or min(psutil.cpu_count(logical=False) or usable, usable)


def options_of(results: str | Path | None, given: Mapping[str, Any]) -> Options:
    """Return the options of a run; raise UserError if an option does not exist."""
    known = [field.name for field in fields(Options)]
    if unknown := [name for name in given if name not in known]:
        hint = f"valid: {listed(known)}; to choose machines, only=['machine=NAME']"
        raise UserError(f"no option {unknown[0]!r}; {hint}")
    if not isinstance(results, str | PathLike | None):
        raise UserError(f"results must be the path of a folder, got {results!r}")
    return Options(results, **given)


def as_list(experiments: Experiment | Iterable[Experiment]) -> list[Experiment]:
    """Return a list of experiments, given one experiment or an iterable of experiments.

    Raises UserError if no experiment is given.
    """
    single = isinstance(experiments, str | Path | Mapping) or hasattr(experiments, "cluster")
    given: Any = [experiments] if single else list(experiments)  # type: ignore[arg-type]
    if not given:
        raise UserError("no experiment is given")
    return given


def unbundled(experiments: Experiment | Iterable[Experiment], options: Options) -> list[Experiment]:
    """Return a list of experiments, with the configurations in place of each bundle."""
    given = as_list(experiments)
    if not any(isinstance(one, str | Path) and is_bundle(one) for one in given):
        return given
    from mmbench.config.bundled import in_place_of_bundles

    return in_place_of_bundles(given, options.set, options.trusted)


def has_terminal() -> bool:
    """Return whether the standard error stream is a terminal."""
    # the stream is None if it was closed before Python started
    return sys.stderr is not None and sys.stderr.isatty()


def to_stderr(line: str) -> None:
    """Print a line to the standard error stream, or do nothing if the line cannot be printed."""
    with suppress(OSError):
        print(visible(line), file=sys.stderr)


def parse_only(
    only: Iterable[str], known: Mapping[str, Collection[str]], where: str = "the experiment"
) -> dict[str, set[str]]:
    """Return the names in the options ``--only``, under the keys "dataset" and "machine".

    `known` contains the data sets and the machines of `where`. A key that occurs in no option is
    missing. Raises UserError if an option is neither ``dataset=NAME`` nor ``machine=NAME``, or if
    the name is unknown.
    """
    wanted: dict[str, set[str]] = {}
    for option in only:
        part, equals, name = option.partition("=")
        if part not in known or not equals:
            raise UserError(f"--only {option}: must be dataset=NAME or machine=NAME")
        if name not in known[part]:
            hint = did_you_mean(name, known[part])
            raise UserError(f"--only {option}: no such {part} in {where}{hint}")
        wanted.setdefault(part, set()).add(name)
    return wanted
