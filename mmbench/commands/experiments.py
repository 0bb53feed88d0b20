"""Plan and run experiments.

All is checked before the first job runs and before a file is written. If the server of a data set
cannot be reached, only the jobs with this data set fail.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

from scipy.sparse import issparse

from mmbench.commands.options import Options, Say, as_list, has_terminal, parse_only
from mmbench.config.files import find_config
from mmbench.config.grids import AUTO
from mmbench.config.model import Config, DatasetEntry
from mmbench.config.plan import job_of_column, need_dense_rows, plan, plan_of
from mmbench.config.read import load_configs, to_yaml, with_tasks
from mmbench.config.smoke import smoke
from mmbench.datasets.dataset import DatasetRef
from mmbench.datasets.fetch import NotAvailable, Places
from mmbench.datasets.load import load_dataset
from mmbench.datasets.partitions import split_at, split_slots
from mmbench.errors import SEVERITY, UserError, listed
from mmbench.jobs.choice import choice_of
from mmbench.jobs.job import Job
from mmbench.jobs.limits import Limits
from mmbench.jobs.planned import Plan
from mmbench.jobs.prepare import check_rows
from mmbench.jobs.record import is_done
from mmbench.jobs.store import CONFIG, RecordStore
from mmbench.jobs.trial import faults, needs_trial
from mmbench.machines import machine_class
from mmbench.machines.base.foreign import ANY_VALUE
from mmbench.results.cells import MIN_VALUES
from mmbench.running.local import LocalExecutor
from mmbench.running.progress import seconds_of
from mmbench.running.runner import EXIT_FAILED, run

if TYPE_CHECKING:
    from mmbench.commands.options import Experiment
    from mmbench.running.runner import Executor

__all__ = ["Finished"]

#: Package of each solver that an extra installs, by the name of module and extra.
EXTRA_SOLVERS = {"libsvm": "libsvm-official", "ecos": "ecos (Python 3.12 or older)"}
#: Time limit of the trial fits on a data set, in seconds.
TRIAL_SECONDS = 30


@dataclass(frozen=True)
class PlannedExperiment:
    """A configuration, with its jobs and its results folder."""

    config: Config
    #: Jobs that the options of the run select.
    jobs: list[Job] = field(repr=False)
    #: Plan of all jobs in the configuration.
    plan: Plan = field(repr=False)
    #: Results folder of the experiment.
    folder: Path
    #: Results folder of the experiment from which the jobs take selected parameters.
    source: Path | None = None
    #: Names of the data sets that cannot be downloaded, mapped to the reasons.
    absent: Mapping[str, str] = field(default_factory=dict)
    #: The same for data sets and suites without jobs, since their splits are unknown.
    unplanned: Mapping[str, str] = field(default_factory=dict)
    #: Messages about machines that are left out, since their solvers are not installed.
    left_out: Sequence[str] = ()


@dataclass(frozen=True)
class Finished:
    """The outcome of the run of an experiment.

    Attributes
    ----------
    name : str
        Name of the experiment.
    folder : pathlib.Path
        Results folder of the experiment.
    done, reused : int
        Number of jobs that this run finished, and number of jobs that an earlier run finished.
    failed : list of str
        For each failed job, the reason for the failure.
    left : int
        Number of jobs that were not run because the run was interrupted.
    exit_code : int
        0 if all jobs are done, 1 if a job failed or a record was deleted, 2 if the input of a job
        was not valid, 130 if the run was interrupted. With the option `strict`, the exit code is at
        least 1 if a solution is not optimal.
    """

    name: str
    folder: Path
    done: int
    reused: int
    failed: list[str]
    left: int
    exit_code: int


# -- planning ----------------------------------------------------------------------------------


def plan_experiments(
    experiments: Experiment | Iterable[Experiment],
    options: Options,
    say: Say | None = None,
    executor: Executor | None = None,
) -> list[PlannedExperiment]:
    """Return the experiments, each with the jobs that `options` select.

    If `say` is given, the data sets are downloaded and checked, and `say` is called with warnings;
    data sets whose server cannot be reached are added to the field `absent`. Without `say`, data
    sets with a card are not read, except for trial fits (`mmbench.jobs.trial`), which run on
    `executor`, or in a new process.
    """
    configs = load_configs(given := as_list(experiments), options.set)
    # without the option `results`, an experiment given by its results folder continues there
    files = (find_config(one).absolute() for one in given if isinstance(one, str | Path))
    stores = [f.parent for f in files if f.name == CONFIG and f.with_name("records").is_dir()]
    homes = {} if options.results else {f.name: os.path.relpath(f.parent) for f in stores}
    homes |= {c.source.name: homes[c.name] for c in configs if c.source and c.name in homes}
    configs, lost = _with_tasks(configs, options, say)
    if options.smoke:
        configs = [smoke(config) for config in configs]
    asked = {config.name for config in configs}
    # an experiment runs after the experiment from which it takes selected parameters
    by_name: dict[str, Config] = {}
    for config in configs:
        for one in filter(None, (config.source, config)):
            by_name.setdefault(one.name, one)
    configs = list(by_name.values())
    names = {
        "dataset": {entry.label for config in configs for entry in config.datasets},
        "machine": {name for config in configs for name in config.machines},
    }
    wanted, planned = parse_only(options.only, names), []
    for config in configs:
        results = Path(homes.get(config.name, options.results or "results"))
        absent: dict[str, str] = {}
        for entry in config.datasets:
            if (say or entry.path) and entry.label in wanted.get("dataset", {entry.label}):
                try:
                    _prepare(config, entry, options, wanted.get("machine", config.machines), say)
                except NotAvailable as error:
                    absent[entry.label] = str(error)
        jobs = plan(config, Path(options.store), options.mirror, say is not None, absent)
        if absent and not jobs:
            raise UserError(next(iter(absent.values())))
        names_of_jobs = {job.dataset.name for job in jobs}
        absent = {n: why for n, why in absent.items() if n in wanted.get("dataset", absent)}
        unplanned = {n: why for n, why in absent.items() if n not in names_of_jobs}
        if "dataset" not in wanted:
            unplanned |= lost.get(config.name, {})
        kept, full = keep_only(jobs, wanted), plan_of(config, jobs)
        kept, left_out = without_missing_solvers(kept)
        kept = drawn(kept, options, say)
        _try([job for job in kept if job.dataset.name not in absent], options, say, executor)
        source = results / config.source.name if config.source else None
        if left_out and not kept:
            raise UserError(f"{config.name}: {left_out[0]}")
        if say:
            for line in left_out:
                say(f"{config.name}: {line}")
        parts = (config, kept, full, results / config.name, source, absent, unplanned, left_out)
        planned.append(PlannedExperiment(*parts))
    planned = [one if one.config.name in asked else _needed(one, planned) for one in planned]
    planned = [one for one in planned if one.jobs]
    if not planned:
        raise UserError(f"--only {' --only '.join(options.only)}: no job is left")
    if all(job.dataset.name in one.absent for one in planned for job in one.jobs):
        raise UserError(next(iter(planned[0].absent.values())))
    return planned


def _with_tasks(
    configs: Iterable[Config], options: Options, say: Say | None
) -> tuple[list[Config], dict[str, dict[str, str]]]:
    """Return configurations with the tasks of their suites, and for each name of a configuration
    the suites that cannot be downloaded, with the reasons; `say` names the tasks left out.
    """
    online, made, absent = say is not None, list[Config](), dict[str, dict[str, str]]()
    places = Places(Path(options.store), options.mirror, online, online and has_terminal())
    for config in configs:
        expanded, messages, absent[config.name] = with_tasks(config, places)
        made.append(expanded)
        if say:
            for message in messages:
                say(message)
    return made, absent


def _prepare(
    config: Config,
    entry: DatasetEntry,
    options: Options,
    machines: Collection[str],
    say: Say | None,
) -> None:
    """Load a data set, make its first split, and check that the machines can be trained on it; pass
    warnings to `say`.

    Raises UserError for classes with too few training rows, and for sparse tables of machines that
    need dense rows.
    """
    protocol, rule = config.protocol, config.protocol.test.spec
    ref, store = entry.ref(config.steps_of(entry)), Path(options.store)
    data = load_dataset(ref, store=store, mirror=options.mirror, progress=has_terminal())
    dense = [name for name in need_dense_rows(config) if name in machines]
    if issparse(data.X) and dense:
        needed = f"is sparse, but dense rows are needed by {listed(dense)}"
        raise UserError(f"{entry.label}: {needed}{_others(machines, dense)}")
    repeat, fold = split_slots(rule, data, protocol.repeats)[0]
    at: dict[str, Any] = {"repeat": repeat, "fold": fold, "seed": protocol.seed[0]}
    # one split with the smallest training size, and one split with the largest training size
    subsets = dict.fromkeys((protocol.subsets[0], protocol.subsets[-1]))
    splits = [split_at(rule, data, max_train=subset, **at) for subset in subsets]
    # one split per training size is enough, since all stratified splits of the same size have equal
    # class counts
    given: dict[str, Any] = {"dataset": ref, "dataset_hash": data.content_hash}
    for column in config.machines:
        job = job_of_column(config, entry, column, config.kernels_of(column)[0], **given)
        for split in splits:
            check_rows(job, data.y[split.train], len(split.rest))
    for warning in data.warnings if say else ():
        say(f"{entry.source or entry.label}: warning: {warning}")


def _try(jobs: Iterable[Job], options: Options, say: Say | None, executor: Executor | None) -> None:
    """Raise UserError if a classifier or a transformer of another package cannot be fitted to the
    first split of a data set.

    In a dry run (`say` is None), a data set with a card is only used if no other data set is, and
    is not copied from a mirror.
    """
    firsts: dict[DatasetRef, dict[str, Job]] = {}
    for job in jobs:
        firsts.setdefault(job.dataset, {}).setdefault(job.column, job)
    tried: list[tuple[DatasetRef, list[Job]]] = []
    for ref in sorted(firsts, key=lambda ref: ref.card is not None):
        own = [job for job in firsts[ref].values() if needs_trial(job)]
        if own and (say or ref.card is None or not tried):
            tried.append((ref, own))
    if not tried:
        return
    with ExitStack() as stack:
        if executor is None or executor.remote:
            try:
                executor = stack.enter_context(closing(LocalExecutor(1)))
            except UserError:  # this operating system has no worker processes
                return
        for ref, own in tried:
            mirror = options.mirror if say or ref.card is None else None
            places = Path(options.store).absolute(), mirror, say is not None
            future = executor.submit(faults, own, *places, limits=Limits(time=TRIAL_SECONDS))
            ended: list[Any] = []
            while future not in ended:
                ended = executor.wait()
            if isinstance(error := future.exception(), UserError):
                raise error
            # a classifier that needs much time or memory is not refused: its jobs have limits
            if error is None and (found := future.result()):
                reason = next(iter(found.values()))
                raise UserError(f"{ref.name}: {reason}{_others(firsts[ref], found)}")


def _others(columns: Iterable[str], refused: Collection[str]) -> str:
    """Return a hint with the options that run only the entries of ``machines`` not in `refused`."""
    others = [f"--only machine={name}" for name in columns if name not in refused]
    return f"; to run only the others, {' '.join(others)}" if others else ""


def _needed(source: PlannedExperiment, planned: Iterable[PlannedExperiment]) -> PlannedExperiment:
    """Return an experiment with only the jobs from which other experiments inherit parameters."""
    children = (other for other in planned if other.source == source.folder)
    parents = {key for other in children for job in other.jobs for key in job.parents}
    return replace(source, jobs=keep_keys(source.jobs, parents))


def keep_only(jobs: Sequence[Job], wanted: dict[str, set[str]]) -> list[Job]:
    """Return the jobs of the selected data sets and machines, and the parents of these jobs.

    The parents of a job are the jobs whose selected parameters the job inherits.
    """
    keys = (
        job.key
        for job in jobs
        if job.dataset.name in wanted.get("dataset", {job.dataset.name})
        and job.column in wanted.get("machine", {job.column})
    )
    return keep_keys(jobs, keys)


def drawn(jobs: list[Job], options: Options, say: Say | None) -> list[Job]:
    """Return the jobs that the option ``--sample`` draws, and the parents of these jobs."""
    if options.sample is None or options.sample >= len(jobs):
        return jobs
    kept = Random(options.sample_seed).sample([job.key for job in jobs], options.sample)
    found = keep_keys(jobs, kept)
    if say:
        more = len(found) - len(kept)
        parents = f", and {more} jobs from which these take parameters" if more else ""
        head = f"{jobs[0].experiment}: {len(kept)} of {len(jobs)} jobs, drawn at random"
        say(f"{head} from the seed {options.sample_seed}{parents}")
    return found


def without_missing_solvers(jobs: Sequence[Job]) -> tuple[list[Job], list[str]]:
    """Return the jobs whose solvers are installed, and a message for each missing package.

    A job that inherits parameters from a job with a missing solver is left out, too.
    """
    lost: set[str] = set()
    columns: dict[str, dict[str, None]] = {}
    for job in jobs:  # the parents of a job precede the job
        values = [value for name, value in job.params if name == "solver"]
        values += [value for name, axis in job.grid if name == "solver" for value in axis]
        own = ":" not in job.machine
        missing = [s for s in values if own and s in EXTRA_SOLVERS and find_spec(s) is None]
        if missing or lost.intersection(job.parents):
            lost.add(job.key)
            for solver in missing:
                columns.setdefault(solver, {})[job.column] = None
    messages = [
        f"left out: {listed([*names])}; solver {solver!r} needs the package "
        f"{EXTRA_SOLVERS[solver]}: pip install 'mmbench[{solver}]'"
        for solver, names in columns.items()
    ]
    return [job for job in jobs if job.key not in lost], messages


def keep_keys(jobs: Sequence[Job], keys: Iterable[str]) -> list[Job]:
    """Return the jobs with the given keys, and the parents of these jobs."""
    kept = set(keys)
    for job in reversed(jobs):  # in `jobs`, the parents of a job precede the job
        if job.key in kept:
            kept.update(job.parents)
    return [job for job in jobs if job.key in kept]


# -- running -----------------------------------------------------------------------------------


def run_planned(
    experiment: PlannedExperiment, executor: Executor, options: Options, say: Say
) -> Finished:
    """Run the selected jobs of an experiment, and return the outcome."""
    folder, name, plan = experiment.folder, experiment.config.name, experiment.plan
    if (folder / CONFIG).is_file():
        for damage in RecordStore(folder).damage():
            say(f"{folder}: {damage}; it is replaced")
    store = RecordStore.create(folder, to_yaml(experiment.config), plan)
    done = run(
        experiment.jobs,
        store,
        executor,
        data=Path(options.store).absolute(),
        mirror=options.mirror,
        limits=options.limits.over(experiment.config.limits.amounts),
        source=RecordStore(experiment.source) if experiment.source else None,
        rerun=options.rerun,
        planned=plan.jobs,
        absent=experiment.absent,
        by_machine=(lambda jobs: say(_line(jobs, store, plan))) if options.by_machine else None,
    )
    for line in done.wrong_input:
        say(line)
    for line in grid_ends(experiment, store) if done.done else ():
        say(line)
    if others := len(set(store.keys()) - plan.jobs):
        text = "records are of other settings, or of earlier versions of a machine; tables leave"
        say(f"{folder}: {others} {text} them out, 'mmbench clean' removes them")
    more = f", {done.lost} deleted" if done.lost else ""
    if done.doubtful:
        counts = sorted(done.doubtful.items(), key=lambda item: -SEVERITY.index(item[0]))
        kinds = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts)
        more += f", {done.doubtful.total()} with fits that are not optimal ({kinds})"
    say(
        f"{name}: {done.done} jobs done, {done.reused} done before, "
        f"{len(done.failed)} failed, {done.left} left{more}; records are in {folder}"
    )
    for reason in experiment.unplanned.values():
        say(f"{name}: not run: {reason}")
    incomplete = experiment.unplanned or (options.strict and done.doubtful)
    code = max(done.exit_code, EXIT_FAILED if incomplete else 0)
    reasons = [str(record["reason"]) for record in done.failed]
    return Finished(name, folder, done.done, done.reused, reasons, done.left, code)


def grid_ends(experiment: PlannedExperiment, store: RecordStore) -> list[str]:
    """Return a line for each parameter of a machine of which more than half of the selections lie
    at an end of its grid, with the option that widens the grid.

    Not counted are ends beyond which no value is valid or of use, and grids of two values.
    """
    selections: dict[tuple[str, str], list[float]] = {}
    grids: dict[tuple[str, str], Job] = {}
    for job in experiment.jobs:
        record = store.find(job.key) if job.grid else None
        chosen = choice_of((record or {}).get("selection", {}))
        for name, value in ((n, v) for one in chosen for n, v in one.items()):
            axis = dict(job.grid).get(name, ())
            if axis and all(isinstance(v, int | float) for v in (value, *axis)):
                selections.setdefault((job.column, name), []).append(value)
                grids[job.column, name] = job
    lines = []
    for (column, name), values in selections.items():
        job = grids[column, name]
        grid, wider = dict(job.grid)[name], _widened(job, name)
        at_ends = sum(values.count(end(grid)) for end in (min, max) if end(wider) != end(grid))
        if 2 * at_ends > len(values):
            stated, own = experiment.config.machines[column].grid, f"machines.{column}"
            axes = {n: f"[{', '.join(_short(v) for v in axis)}]" for n, axis in job.grid}
            axes[name] = f"[{', '.join(map(_short, wider))}]"
            options = [f"{own}.grid.{name}={axes[name]}"]
            if name not in stated:  # such as B_fraction, the meaning of B: auto
                options = [f"{own}.grid={{{', '.join(f'{n}: {axes[n]}' for n in axes)}}}"]
            automatic = experiment.config.gamma_scaling == "none" and stated.get(name) == AUTO
            if name == "gamma" and automatic:
                options += [f"{own}.params.gamma_scaling=variance"]
            sets = " ".join(f"--set '{option}'" for option in options)
            counts = f"{at_ends} of {len(values)} selections of {name} lie at an end of its grid"
            lines.append(f"{experiment.plan.label(column)}: {counts}; a wider grid: {sets}")
    return lines


def _short(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, int | float) else str(value)


def _widened(job: Job, name: str) -> list[float]:
    """Return a grid with two more values at each end, as far as they are valid and of use."""
    grid = [value for value in dict(job.grid)[name] if isinstance(value, int | float)]
    if len(grid) < MIN_VALUES or min(grid) <= 0:
        return grid
    parameter = machine_class(job.machine).parameters[name]
    down, up = grid[0] / grid[1], grid[-1] / grid[-2]
    more = [[grid[0] * down**k for k in (2, 1)], [grid[-1] * up**k for k in (1, 2)]]
    if (parameter.integer or parameter is ANY_VALUE) and all(isinstance(v, int) for v in grid):
        # the number of neighbours or the depth of a tree
        more = [[v for v in map(round, part) if v not in grid] for part in more]
    least = parameter.useless_to
    below, above = ([v for v in part if v > least and not parameter.problem(v)] for part in more)
    return [*below, *grid, *above]


def _line(jobs: Sequence[Job], store: RecordStore, plan: Plan) -> str:
    """Return a line of text with the mean accuracy and the CPU time of a machine.

    If no job has a result, the line contains the statuses of the jobs instead.
    """
    records = [record for job in jobs if (record := store.find(job.key)) is not None]
    label = plan.label(jobs[0].column)
    values = [r["metrics"]["accuracy_pct"] for r in records if is_done(r)]
    if not values:
        return f"{label}: {', '.join(dict.fromkeys(r['status'] for r in records)) or 'not run'}"
    failed = f", {len(jobs) - len(values)} failed" * (len(values) < len(jobs))
    seconds = sum(seconds_of(r["cpu_seconds"]) for r in records if is_done(r))
    return f"{label}: {fmean(values):.1f} % correct, {seconds:.1f} CPU s{failed}"
