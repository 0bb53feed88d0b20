"""``mmbench easy``: machines compared on one table of data, without a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mmbench.commands.options import Say, to_stderr
from mmbench.commands.run import run
from mmbench.errors import UserError, listed
from mmbench.jobs.store import CONFIG, write_atomically

if TYPE_CHECKING:
    import pandas as pd

    from mmbench.config.model import Config

#: Every machine with its own grid, but that those after the SVM take over its width, and what else
#: they have in common with it; beside two classifiers that everybody knows.
MACHINES: dict[str, dict[str, Any]] = {
    "svm": {"grid": {"C": "auto", "gamma": "auto"}},
    "rmm": {"use": "svm", "grid": {"B": "auto"}},
    "mmrm": {"use": "svm", "grid": {"C": "auto"}},
    "sigma_svm": {"use": "svm", "grid": {"D": "auto"}},
    "fsvm": {"use": "svm", "grid": {"C": "auto"}},
    "rsvm_plus": {"use": "svm", "grid": {"C": "auto", "lam": "auto"}},
    "rsvm_mu_plus": {"use": "svm", "grid": {"C": "auto", "lam": "auto"}},
    "mrsvm": {"use": "svm", "grid": {"C": "auto"}},
    "m4": {"use": "svm", "grid": {"C": "auto"}},
    "lda": {"use": "svm", "grid": {"ridge": "auto"}},
    "mpm": {"use": "svm", "grid": {"ridge": "auto"}},
    "mempm": {"use": "svm", "grid": {"ridge": "auto"}},
    "klda": {"grid": {"gamma": "auto", "eta": "auto"}},
    "mamc": {"grid": {"Cm": "auto", "gamma": "auto"}},
    "lssvm": {"grid": {"C": "auto", "gamma": "auto"}},
    "logistic_regression": {
        "estimator": "sklearn.linear_model.LogisticRegression",
        "params": {"max_iter": 1000},
        "grid": {"C": {"log10": [-3, 3]}},
        "label": "logistic regression",
    },
    "random_forest": {
        "estimator": "sklearn.ensemble.RandomForestClassifier",
        "params": {"n_estimators": 200},
        "grid": {"max_features": [0.2, 0.4, 0.8]},
        "label": "random forest",
    },
}
#: More training rows take hours rather than minutes.
MAX_TRAIN = 1000
#: The rest of the experiment.
SETTINGS: dict[str, Any] = {
    "preprocess": [{"impute": "median"}, "one_hot", "standard"],
    "kernel": "rbf",
    "protocol": {"test": {"kfold": 5}, "seed": 0, "max_train": MAX_TRAIN},
    "select": {"folds": 3},
    "limits": {"time": "10min"},
    "metrics": ["accuracy", "balanced_accuracy", "auc"],
    "layout": "machines",
}
FIGURE = "machines"


class Comparison(NamedTuple):
    """The outcome of `easy`: the table as text, the folder of the records, and the exit code."""

    text: str
    folder: Path
    exit_code: int


def easy(
    data: str | Path | pd.DataFrame,
    target: str | int | None = None,
    results: str | Path = "results",
    *,
    all_machines: bool = False,
    say: Say = to_stderr,
    **options: Any,
) -> Comparison:
    """Compare machines on a table of data.

    Parameters
    ----------
    data : path or DataFrame
        A file of any format that a configuration may name, or a data frame.
    target : str or int, optional
        The column of the classes; not needed for formats that know it.
    results : path
        Folder that gets a folder with the records.
    all_machines : bool
        Whether to run every machine, which takes many times as long.
    say : callable
        Called with lines for the user.
    **options
        Fields of `mmbench.commands.options.Options`; ``set`` replaces values of the experiment.

    Returns
    -------
    Comparison
        ``mmbench.load(comparison.folder)`` returns the records.

    Raises
    ------
    UserError
        If the data or an option is wrong; nothing has run then.
    """
    from mmbench.commands.outputs import figure, table

    path = data if isinstance(data, str | Path) else _written(data, Path(results))
    config = config_for(Path(path), target, options.pop("set", ()), all_machines)
    (finished,) = run(config, results, say=say, **options)
    folder = finished.folder
    if not any((folder / "records").glob("*.npz")):  # nothing has a result
        return Comparison("", folder, finished.exit_code)
    text = table(folder, say=say)
    try:
        figure(FIGURE, folder, say=say)
    except UserError as error:  # the results are of other settings: the table says so too
        say(f"no figure: {error}")
    say(f"another metric: mmbench table {folder} --metric mcc; the experiment: {folder / CONFIG}")
    return Comparison(text, folder, finished.exit_code)


def show(
    path: str | Path, target: str | int | None, overrides: Iterable[str] = (), every: bool = False
) -> str:
    """Return the experiment that `easy` runs, as YAML."""
    from mmbench.config.read import to_yaml

    return to_yaml(config_for(Path(path), target, overrides, every))


def config_for(
    path: Path, target: str | int | None, overrides: Iterable[str] = (), every: bool = False
) -> Config:
    """Return the experiment that `easy` runs."""
    from mmbench.config.read import config_of

    return config_of(experiment_of(path, target, every), Path(f"easy {path.name}"), overrides)


def _written(frame: pd.DataFrame, results: Path) -> Path:
    """Write a data frame where workers can read it."""
    path = results / "frame.csv"
    results.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: frame.to_csv(file, index=False))
    return path


def experiment_of(path: Path, target: str | int | None, every: bool = False) -> dict[str, Any]:
    """Return the experiment as a configuration states it."""
    from mmbench.datasets import card_names
    from mmbench.datasets.user.options import inner_path, knows_target

    if not path.is_file():
        raise UserError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")
    if target is None and not knows_target(str(path)):
        names = listed(_columns(path))
        raise UserError(f"{path}: say which column holds the classes: --target, one of {names}")
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", inner_path(path).stem).strip("_-") or "data"
    label = f"my_{name}" if name in card_names() else name
    data: dict[str, Any] = {"path": str(path.resolve()), "name": label}
    if isinstance(target, str):
        number = re.fullmatch(r"-?[0-9]+", target) and target not in _columns(path)
        target = int(target) if number else target
    if target is not None:
        data["target"] = target
    if not knows_target(str(path)):
        data["categorical"] = "auto"
    return {"name": f"easy_{name}", "datasets": [data], **SETTINGS, "machines": MACHINES}


def _columns(path: Path) -> Sequence[str]:
    """Return the names of a table's columns."""
    from mmbench.datasets.user.formats import Table, read_file
    from mmbench.datasets.user.options import FileOptions

    try:
        table = read_file(path, FileOptions(), -1)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return list(table.frame.columns) if isinstance(table, Table) else ()
