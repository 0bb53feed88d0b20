"""The function `mmbench.refit`: training on all rows, with the parameters of an experiment."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from mmbench.allowance import messages_to
from mmbench.commands.options import Say
from mmbench.config.read import load_config
from mmbench.errors import UserError, converted, did_you_mean, listed
from mmbench.jobs.choice import Choice, choice_of, middle
from mmbench.jobs.disk import write_output
from mmbench.jobs.planned import grouped, key_of
from mmbench.jobs.record import plain
from mmbench.jobs.store import CONFIG
from mmbench.jobs.train import fit_selected, job_seeds, make_machine
from mmbench.results.cells import METRIC, name_in_frame
from mmbench.results.folder import read_results
from mmbench.results.pairwise import sign_of

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from mmbench.jobs.record import Record
    from mmbench.results.frames import Results

__all__ = ["refit"]


def refit(
    results: str | Path,
    machine: str | None = None,
    *,
    dataset: str | None = None,
    kernel: str | None = None,
    calibrate: str | None = None,
    store: str | Path = "datasets",
    mirror: str | None = None,
    say: Say = lambda line: None,
) -> Pipeline:
    """Train a machine of an experiment on all rows of a data set, with the selected parameters.

    Parameters
    ----------
    results : path
        Folder of an experiment with records.
    machine : str, optional
        Name of the machine in the experiment. By default, only machines with results on the largest
        number of splits are considered. Among these machines, the machine and the kernel with the
        best mean on `dataset` are used, of the first metric of the experiment's tables, by default
        the accuracy.
    dataset, kernel : str, optional
        Names of a data set and of a kernel. The data set is needed if the experiment has several
        data sets. The kernel is needed if `machine` is given and was run with several kernels.
    calibrate : {"sigmoid", "isotonic"}, optional
        Method by which probabilities are calibrated with five folds, for ``predict_proba``.
    store, mirror : path
        `store` is the folder of downloaded data files. `mirror` is a folder or URL that is searched
        after the store.
    say : callable
        Called with a message before the training, and every 10 seconds of it.

    Returns
    -------
    Pipeline
        Fitted preprocessing steps and the fitted machine. Each selected parameter of the machine is
        the median of the values that were selected on the splits. For a user's table, `predict`
        takes a DataFrame with the columns of the table, or an array of the feature columns in the
        order of the table. The categories must have the same names as in the user's table. The
        attribute ``provenance_`` contains the experiment, the hash of the data, the parameters, the
        certificates, and the expected accuracy (mean, standard deviation and number of splits).

    Raises
    ------
    UserError
        If the machine has no finished record, or if the data have changed since the run.

    Notes
    -----
    The expected accuracy is the mean test accuracy over splits without failed trainings. On each
    split, the machine was trained on fewer rows than the returned model, and with the parameters
    selected on this split. If the machine was selected by its accuracy, the expected accuracy is
    slightly too high.

    The key ``calibrate`` of the experiment has no effect. If the experiment limits the number of
    training rows (``max_train``), in total or per class, the model is trained on that number of
    rows, since parameters such as C depend on the number of rows.

    Examples
    --------
    >>> import mmbench
    >>> model = mmbench.refit("results/mine", "rmm")  # doctest: +SKIP
    >>> model.predict(X)  # doctest: +SKIP
    """
    import numpy as np
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer

    from mmbench.datasets.load import load_dataset
    from mmbench.datasets.partitions import training_subset
    from mmbench.datasets.preprocess import make_preprocess
    from mmbench.machines.base.foreign import ForeignClassifier

    check_calibration(calibrate)
    records = records_of(Path(results), machine, dataset, kernel)
    job = records[0].job
    with suppress(UserError, KeyError):  # the user's data file may have moved since the run
        entry = {e.label: e for e in load_config(Path(results) / CONFIG).datasets}[job.dataset.name]
        job = replace(job, dataset=replace(job.dataset, path=entry.source, folds=entry.folds))
    data = load_dataset(job.dataset, store=Path(store), mirror=mirror)
    if data.content_hash != job.dataset_hash:
        name = job.dataset.path or job.dataset.name
        raise UserError(f"{name}: the data changed since the run; run the experiment again")
    with converted(str(results), ValueError):
        every = np.arange(len(data.y))
        rows = training_subset(every, data.y, job.split.max_train, job.split.seed)
    labels = data.y[rows]
    say(f"{job.column}: trains on {len(rows)} of {len(data.y)} rows")
    steps = make_preprocess(job.dataset.preprocess, data.n_categorical, job.split.seed)
    steps.fit(data.X[rows], labels)
    X = steps.transform(data.X[rows])
    with converted(str(results), ValueError):
        choice = middle([choice_of(record.selection) for record in records])
    fitted = make_machine(job, 1, job_seeds(job)["machine"], labels)
    with messages_to(say):
        own = fit_selected(fitted, job, choice, X, labels)
    table = [("table", FunctionTransformer(data.table.transform))] if data.table else []
    # a pipeline needs a scikit-learn estimator, which a `ForeignClassifier` stores as an attribute
    last = fitted.estimator if isinstance(fitted, ForeignClassifier) else fitted
    if calibrate is not None:
        last = CalibratedClassifierCV(last, method=calibrate, cv=5, ensemble=False).fit(X, labels)
    model = Pipeline([*table, ("preprocess", steps), ("machine", last)])
    model.provenance_ = _provenance(records, fitted, own)
    return model


def check_calibration(method: str | None) -> None:
    """Raise UserError for an unknown method of calibration."""
    if method not in (None, "sigmoid", "isotonic"):
        raise UserError(f"calibrate {method!r}: must be 'sigmoid' or 'isotonic'")


def check_file(path: Path) -> None:
    """Raise UserError if no ``.joblib`` file can be written at `path`."""
    if path.suffix != ".joblib" or path.is_dir():
        raise UserError(f"{path}: a model is written to a .joblib file")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.parent}: no such folder, or no permission to write in it")


def write(model: Pipeline, path: Path) -> None:
    """Write a model to a ``.joblib`` file, and its provenance to a JSON file of the same name."""
    import joblib

    text = json.dumps(model.provenance_, indent=2, default=str) + "\n"
    write_output(path, partial(joblib.dump, model))
    write_output(path.with_suffix(".json"), text.encode())


def records_of(
    folder: Path,
    machine: str | None = None,
    dataset: str | None = None,
    kernel: str | None = None,
) -> list[Record]:
    """Return the finished records of one machine, data set and kernel, without failed trainings.

    An argument that is None is chosen as described in `refit`.
    """
    found = read_results([folder])
    if len(found) != 1:
        names = listed([str(one.folder) for one in found])
        raise UserError(f"{folder}: contains several experiments; give one of {names}")
    # the records are in the order of the table, so that the first machine in the table is chosen if
    # several machines have the best mean accuracy
    counted = (row for key in found[0].by_cell for row in found[0].counted(key))
    records = [found[0].records[row.record] for row in counted if found[0].has_records]
    if not records:
        raise UserError(f"{folder}: no finished record of a machine without failed fits")
    if machine is None:
        asked = [r for r in records if dataset in (None, r.job.dataset.name)] or records
        asked = [r for r in asked if kernel in (None, r.job.kernel)] or asked
        scores = _scores(found[0], asked)
        splits = grouped(((r.job.column, r.job.kernel), (r.job.dataset, r.at)) for r in asked)
        # only machines with the largest number of splits are compared, since a mean over fewer
        # splits may differ by chance
        machine, best_kernel = max(scores, key=lambda c: (len({*splits[c]}), mean(scores[c])))
        kernel = kernel or best_kernel
    for key, name in {"machine": machine, "dataset": dataset, "kernel": kernel}.items():
        known = grouped((getattr(key_of(record.job), key), record) for record in records)
        if name is None and len(known) > 1:
            raise UserError(f"{folder}: several values of {key}; give one of {listed([*known])}")
        if name is not None and name not in known:
            raise UserError(f"{folder}: no record of the {key} {name!r}{did_you_mean(name, known)}")
        records = records if name is None else known[name]
    if len({(r.job.split.size, dict(r.job.params).get("degree")) for r in records}) > 1:
        raise UserError(f"{folder}: refit supports neither several training sizes nor degrees")
    return records


def _scores(found: Results, records: list[Record]) -> dict[tuple[str, str], list[float]]:
    """Return the values of the first metric of the tables by machine and kernel, with the opposite
    sign if smaller values are better.
    """
    metric = next(map(name_in_frame, found.plan.metrics), METRIC)
    values = {key: found.by_split(key, metric) for key in {key_of(r.job) for r in records}}
    known = [(r, values[key_of(r.job)].get(r.at)) for r in records]
    scores = grouped(
        ((r.job.column, r.job.kernel), sign_of(metric) * v) for r, v in known if v is not None
    )
    if not scores:
        raise UserError(f"{found.folder}: no machine has a value of {metric}; state a machine")
    return scores


def _provenance(records: list[Record], fitted: Any, own: Choice) -> dict[str, Any]:
    """Return the origin of a refitted model as a dict that can be written as JSON."""
    import numpy as np

    from mmbench import __version__

    accuracies, job = [record.metrics["accuracy_pct"] for record in records], records[0].job
    return {
        "mmbench": __version__,
        "experiment": job.experiment,
        "dataset": job.dataset.name,
        "data_hash": job.dataset_hash,
        "machine": job.column,
        "kernel": job.kernel if job.has_kernel else None,
        "selected_parameters": own if own[1:] else own[0],
        "expected_accuracy_pct": {
            "mean": float(np.mean(accuracies)),
            "sd": float(np.std(accuracies, ddof=1)) if accuracies[1:] else None,
            "n_splits": len(accuracies),
        },
        # a classifier of another package has no certificates
        "fits": [
            plain({"pair": list(map(str, fit.pair)), "status": fit.status, "gap": fit.gap})
            for fit in (fitted.fits_ if job.has_kernel else ())
        ],
    }
