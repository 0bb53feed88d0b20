"""Run planned experiments, and say what came of them."""

from collections.abc import Iterable

from mmbench.commands.experiments import Experiment
from mmbench.commands.options import Options, Say
from mmbench.config.read import to_yaml
from mmbench.errors import SEVERITY
from mmbench.jobs.store import CONFIG, RecordStore
from mmbench.running.local import Executor
from mmbench.running.runner import EXIT_FAILED, EXIT_INTERRUPTED, Summary, run


def run_experiments(
    experiments: Iterable[Experiment], executor: Executor, options: Options, say: Say
) -> int:
    """Run experiments one after the other and return the worst exit code."""
    code = 0
    for experiment in experiments:
        code = max(code, run_experiment(experiment, executor, options, say))
        if code == EXIT_INTERRUPTED:
            break
    return code


def run_experiment(experiment: Experiment, executor: Executor, options: Options, say: Say) -> int:
    """Run one planned experiment and return its exit code.

    Raises
    ------
    UserError
        If its results folder is somebody else's or cannot be written to.
    """
    if (experiment.folder / CONFIG).is_file():
        for damage in RecordStore(experiment.folder).damage():
            say(f"{experiment.folder}: {damage}; it is replaced")
    store = RecordStore.create(experiment.folder, to_yaml(experiment.config), experiment.plan)
    done = run(
        experiment.jobs,
        store,
        executor,
        data=options.store.absolute(),
        mirror=options.mirror,
        limits=options.limits.over(experiment.config.limits.amounts),
        source=RecordStore(experiment.source) if experiment.source else None,
    )
    for line in done.wrong_input:
        say(line)
    if others := len(set(store.keys()) - experiment.plan.jobs):
        say(
            f"{experiment.folder}: {others} records are of other settings, or of earlier versions "
            "of a machine; tables leave them out, 'mmbench clean' removes them"
        )
    say(
        f"{experiment.config.name}: {done.done} jobs done, {done.reused} done before, "
        f"{len(done.failed)} failed, {done.left} left{_doubts(done)}; "
        f"records are in {experiment.folder}"
    )
    return max(done.exit_code, EXIT_FAILED if options.strict and done.doubtful else 0)


def _doubts(done: Summary) -> str:
    """Say how many jobs have a result by fits that are not solved."""
    if not done.doubtful:
        return ""
    counts = sorted(done.doubtful.items(), key=lambda item: -SEVERITY.index(item[0]))
    kinds = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts)
    return f", {done.doubtful.total()} with fits that are not optimal ({kinds})"
