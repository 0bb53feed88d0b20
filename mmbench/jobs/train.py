"""Train the machine of a job: inherit or select its parameters, and fit the machine."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from mmbench import machines
from mmbench.allowance import Allowance, within
from mmbench.jobs.choice import Choice, choice_of, merged, middle
from mmbench.jobs.clock import Clock
from mmbench.jobs.job import Job, SelectRef
from mmbench.jobs.prepare import Prepared
from mmbench.jobs.record import Record
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.machines.svm import MANY_CLASSES
from mmbench.selection import select


def job_seeds(job: Job) -> dict[str, int]:
    """Return independent seeds for the random choices of a job.

    The seeds depend only on the experiment's seed and the split, so that all machines have the same
    inner folds on a split.
    """
    sequence = np.random.SeedSequence([job.split.seed, job.split.repeat, job.split.fold])
    selection, ties, machine = sequence.generate_state(3).tolist()
    return {"master": job.split.seed, "selection": selection, "ties": ties, "machine": machine}


def train(
    job: Job,
    data: Prepared,
    inherited: Sequence[Choice],
    threads: int,
    seeds: Mapping[str, int],
    clock: Clock,
    spread: AbstractContextManager[Any] | None = None,
) -> tuple[PairwiseClassifier, dict[str, Any]]:
    """Return the fitted machine of a job, and the entry `selection` of the job's record.

    `inherited` are the selected parameters of the parents; `seeds` has the entries "selection" and
    "machine". The clock measures the stages "warm_up", "selection" and "training". Inside the
    context manager `spread`, the workers of a cluster train the pairs of classes.
    """
    choice = middle(inherited) if inherited else [{}]
    machine = make_machine(job, threads, seeds["machine"], data.y_train)
    with clock.stage("warm_up"):
        rehearse(job.machine, job.kernel, dict(job.params).get("solver"))
        together = isinstance(machine, machines.SVM | machines.RMM)
        if together and len(np.unique(data.y_train)) >= MANY_CLASSES:
            compile_pairs()
    search: dict[str, Any] = {"scores": [], "n_points": min(1, len(job.grid))}
    selected: Choice = [{name: values[0] for name, values in job.grid}]
    if any(len(values) > 1 for _, values in job.grid):  # one grid point needs no search
        grid = {n: [by_label({n: v}, data.y_train)[n] for v in values] for n, values in job.grid}
        given = own_part(machine, job, choice)
        if len(given) == 1:
            machine.set_params(**given[0])
            given = [{}]
        space = machine.search_space
        if "tol" in dict(job.params):
            space = space.extended(tol=None)
        with clock.stage("selection"):
            found = select(
                machine,
                data.label_steps.X_pool if data.label_steps else data.X_pool,
                data.y_pool,
                grid,
                job.select,
                space=space,
                groups=data.groups_pool,
                ordered=job.split.rule == "time_series",
                seed=seeds["selection"],
                n_jobs=threads,
                n_train=len(data.y_train),
                pair_params=given,
                steps=data.label_steps and data.label_steps.unfitted,
                stages=machines.alias_of(job.machine).stages,
            )
        search, selected = {**vars(found), "n_points": found.n_points}, found.params
    choice = merged(choice, selected)
    # warnings are not needed, since the record contains the status of each pair of classes
    quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
    with clock.stage("training"), spread or nullcontext(), quiet:
        fit_selected(machine, job, choice, data.X_train, data.y_train)
    return machine, {**search, "params": choice if choice[1:] else choice[0]}


def trained_again(record: Record, data: Prepared) -> PairwiseClassifier:
    """Return the machine of a record, trained again with the selected parameters."""
    chosen, clock = [choice_of(record.selection)], Clock("warm_up", "selection", "training")
    return train(replace(record.job, grid=()), data, chosen, 1, record.seeds, clock)[0]


def make_machine(job: Job, threads: int, seed: int, y: ArrayLike = ()) -> PairwiseClassifier:
    """Return the estimator of a job with the fixed parameters of the job.

    `y` contains the labels of the training rows, which are the keys of class weights.
    """
    settings = {"n_jobs": threads, "random_state": seed, **own_kernel(job.machine, job.kernel)}
    known = machines.machine_class(job.machine).parameters
    own = {name: value for name, value in settings.items() if name in known}
    return machines.make_machine(job.machine, **own, **by_label(dict(job.params), y))


def own_kernel(machine: str, kernel: str) -> dict[str, str]:
    """Return the kernel as a parameter of a machine; a classifier of another package has its own
    parameters only.
    """
    foreign = issubclass(machines.machine_class(machine), ForeignClassifier)
    return {} if foreign else {"kernel": kernel}


def by_label(params: Mapping[str, Any], y: ArrayLike) -> dict[str, Any]:
    """Return parameters in which the keys of class weights are labels in `y`, and not their texts.

    Weights of classes that do not occur in `y` are left out.

    Examples
    --------
    >>> by_label({"C": 1.0, "class_weight": {"0": 1, "1": 5}}, np.array([1, 0, 1]))
    {'C': 1.0, 'class_weight': {0: 1, 1: 5}}
    """
    labels = {str(label): label for label in np.unique(y).tolist()}

    def named(name: str, value: Any) -> Any:
        if not isinstance(value, Mapping) or not is_class_weight(name):
            return value
        return {labels[str(key)]: weight for key, weight in value.items() if str(key) in labels}

    return {name: named(name, value) for name, value in params.items()}


def is_class_weight(name: str) -> bool:
    """Return whether a parameter contains class weights, perhaps of a step in a pipeline."""
    return name.rpartition("__")[2] == "class_weight"


def own_part(machine: PairwiseClassifier, job: Job, choice: Choice) -> Choice:
    """Return the selected parameters that the machine has and that the job does not fix."""
    fixed = {**machines.alias_of(job.machine).params, **dict(job.params)}
    own = machine.parameters.keys() - fixed.keys()
    return [{n: v for n, v in params.items() if n in own} for params in choice]


def fit_selected(
    machine: PairwiseClassifier, job: Job, choice: Choice, X: NDArray, y: NDArray
) -> Choice:
    """Fit the machine of a job with selected parameters; return the parameters that were set."""
    own = own_part(machine, job, choice)
    given = [by_label(params, y) for params in own]
    if len(given) > 1:
        machine.fit_pairs(X, y, given)
    else:
        machine.set_params(**given[0]).fit(X, y)
    return own


@cache
def compile_pairs() -> None:
    """Compile the loop of SVMs and RMMs of many classes."""
    y = np.arange(2 * MANY_CLASSES) // 2
    machines.SVM().fit(np.random.default_rng(0).normal(size=(len(y), 2)), y)


@cache
def rehearse(name: str, kernel: str, solver: str | None) -> None:
    """Train a machine on 24 random rows, so that the machine's code is imported and compiled."""
    from mmbench.solvers.svm_dual.smo import compile_steps

    # the loops of SMO are compiled for float32 and float64, since the type of kernel values depends
    # on the data
    compile_steps()
    X, y = np.random.default_rng(0).normal(size=(24, 2)), np.repeat([0, 1, 2], 8)
    known = machines.machine_class(name).parameters
    stated = {**own_kernel(name, kernel), **({"solver": solver} if solver else {})}
    # errors are ignored, since they occur again when the machine is trained on the data of the job
    with suppress(Exception), within(Allowance()), warnings.catch_warnings(action="ignore"):
        machine = machines.make_machine(name, **{k: v for k, v in stated.items() if k in known})
        if hasattr(machine, "tol"):  # false for classifiers of other packages
            select(machine, X, y, {"tol": [machine.tol]}, SelectRef(folds=2))
        machine.fit(X, y).pairwise_decision_function(X)
