"""``mmbench easy``: every machine on one table of data, without a configuration."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mmbench.commands.launch import launch
from mmbench.commands.options import Options, Say
from mmbench.errors import UserError, listed

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


def easy(path: Path, target: str | None, options: Options, show: bool, say: Say) -> tuple[int, str]:
    """Run every machine on a table and return the exit code and the text of the result.

    Parameters
    ----------
    path : Path
        A file of any format that a configuration may name.
    target : str, optional
        The column of the classes.
    options : Options
        Its overrides replace values of the experiment.
    show : bool
        Whether to return the experiment as YAML and run nothing.
    say : callable
        Gets lines for the user.

    Raises
    ------
    UserError
        If the file or an option is wrong; nothing has run then.
    """
    from mmbench.commands.tables import figure, table
    from mmbench.config.overrides import parse_overrides
    from mmbench.config.read import config_of, to_yaml

    content = experiment_of(path, target)
    config = config_of(content, Path(f"easy {path.name}"), parse_overrides(options.overrides))
    if show:
        return 0, to_yaml(config)
    code = launch([config], replace(options, overrides=()), say)
    folder = options.results / config.name
    if not any((folder / "records").glob("*.npz")):  # nothing has a result
        return code, ""
    text = table([folder], say=say)
    try:
        figure(FIGURE, [folder], say=say)
    except UserError as error:  # the results are of other settings: the table says so too
        say(f"no figure: {error}")
    say(f"another metric: mmbench table {folder} --metric mcc; the experiment: {folder / YAML}")
    return code, text


#: What a run leaves of its configuration.
YAML = "experiment.yaml"


def experiment_of(path: Path, target: str | None) -> dict[str, Any]:
    """Return the experiment as a configuration states it.

    Raises
    ------
    UserError
        If there is no such file, or it needs a target.
    """
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
    if target is not None:
        number = re.fullmatch(r"-?[0-9]+", target) and target not in _columns(path)
        data["target"] = int(target) if number else target
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
