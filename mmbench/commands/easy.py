"""``mmbench easy``: compare machines on one data file, without a configuration file."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from scipy.sparse import issparse

from mmbench.commands.options import Say, options_of, to_stderr
from mmbench.commands.run import run
from mmbench.errors import UserError, converted, listed
from mmbench.jobs.disk import write_atomically
from mmbench.jobs.store import CONFIG
from mmbench.machines import alias_of
from mmbench.reader.file_text import is_number
from mmbench.reader.text_tables import as_pandas, neither, without_bytes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from mmbench.commands.outputs import TableText
    from mmbench.config.model import Config
    from mmbench.datasets.dataset import Dataset
    from mmbench.reader.formats import DenseTable
    from mmbench.results.frames import Results

__all__ = ["Comparison", "easy"]

#: The comparison without a data set; ``more`` are the machines that only `all_machines` adds.
EXPERIMENT = Path(__file__).with_name("easy.yaml")
#: Number of training rows of a machine with a kernel, and of the row `svm_quarter`.
KERNEL_ROWS, QUARTER = 1000, "svm_quarter"
#: Maximum number of classes: one classifier is trained per pair of classes.
MAX_CLASSES = 100


class Comparison(NamedTuple):
    """Result of the function `easy`: the table as text, the results folder, and the exit code.

    In a notebook, the table is shown as HTML.
    """

    text: TableText
    folder: Path
    exit_code: int

    def __str__(self) -> str:
        """Return the table as text."""
        return self.text

    def _repr_html_(self) -> str:
        """Return the table in HTML format."""
        return self.text._repr_html_()


def easy(
    data: str | Path | pd.DataFrame | NDArray,
    target: str | int | ArrayLike | None = None,
    results: str | Path | None = None,
    *,
    metric: str = "accuracy",
    all_machines: bool = False,
    say: Say = to_stderr,
    **options: Any,
) -> Comparison:
    """Compare machines on one data file or data frame.

    Parameters
    ----------
    data : path, DataFrame or array of shape (n_samples, n_features)
        A data file (CSV, ARFF, Parquet, svmlight or npz), or a data frame, also of polars or
        pyarrow if the extra ``parquet`` is installed. A data frame is written
        to a file ``frame_HASH.csv`` in `results`, where HASH is a hash of the content. Since a
        header of numbers would be read as a row of data, a column with the number 3 as name is
        renamed to ``column_3``.
    target : str, int or array-like of shape (n_samples,), optional
        Column of the class labels, or the labels themselves; not needed if the file format
        determines this column.
    results : path, optional
        Folder in which a results folder for this comparison is created, by default ``results``.
    metric : str
        First metric of the table, by which parameters are selected.
    all_machines : bool
        Whether to run all machines, which takes many times as long as the default machines.
    say : callable
        Called with messages for the user.
    **options
        Fields of `mmbench.commands.options.Options`. For example, the field ``set`` replaces values
        of the configuration.

    Returns
    -------
    Comparison
        Table as text, results folder and exit code. The function ``mmbench.load``, called with the
        results folder, reads the records of the comparison.

    Raises
    ------
    UserError
        If the data or an option is not valid. The input is checked before any job is run.
    """
    from mmbench.commands.outputs import TableText, figure, table

    given = options_of(results, options)
    # in a data frame with levels of columns, the name of a column is a tuple
    named = isinstance(target, str) or (
        isinstance(target, tuple) and target in getattr(data, "columns", ())
    )
    labels = isinstance(target, Iterable) and not named
    if labels and not isinstance(data, str | Path):
        data, target = _labelled(data, target)
        labels = False
    frame: Any = data if isinstance(data, str | Path) else as_pandas(data)
    problem = ""
    if labels:
        problem = f"target must be the name of a column, not labels ({type(target).__name__})"
    elif not (isinstance(data, str | Path) or hasattr(frame, "select_dtypes")):
        problem = f"a path or a data frame is needed, got {type(data).__name__}"
    if problem:
        example = "pandas.DataFrame(X).assign(label=y), with target='label'"
        raise UserError(f"{problem}; use {example}")
    overrides = [*by_metric(metric), *given.set]
    if not isinstance(data, str | Path):
        # in a CSV file, a header that contains only numbers would be read as a row of data
        texts: Any = {c: c if isinstance(c, str) else f"column_{c}" for c in frame.columns}
        target = texts.get(target, target)
        frame = frame.set_axis([texts[c] for c in frame.columns], axis=1)
        for name, column in frame.items():
            if odd := neither(column):
                raise UserError(f"{odd}; leave it out by frame.drop(columns={name!r})")
        for name, column in frame.select_dtypes(exclude=["number", "bool", "datetime"]).items():
            if name != target and all(map(is_number, column.dropna().map(str).unique())):
                say(f"column {name!r} is read as numbers; words would be read as categories")
        words = frame.apply(lambda c: without_bytes(c, "utf-8") if c.dtype == object else c)
        content = words.to_csv(index=False).encode()  # workers read a file
        data = Path(results or "results") / f"frame_{sha256(content).hexdigest()[:8]}.csv"
        overrides = ["datasets[0].separator=','", *overrides]
        with converted(f"{data}: cannot be written", OSError):
            data.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(data, content)
    config = config_for(Path(data).expanduser(), target, overrides, all_machines, say)
    (finished,) = run(config, results, say=say, **{**options, "by_machine": True, "set": ()})
    folder = finished.folder
    if not any((folder / "records").glob("*.npz")):  # no job has a result
        return Comparison(TableText(), folder, finished.exit_code)
    text = table(folder, say=say)
    try:
        figure("machines", folder, say=say)
    except UserError as error:  # for example, the records have several training sizes
        say(f"no figure: {error}")
    for line in findings(folder):
        say(line)
    say(f"another metric: mmbench table {folder} --metric mcc; the experiment: {folder / CONFIG}")
    return Comparison(text, folder, finished.exit_code)


def _labelled(X: Any, y: Any) -> tuple[pd.DataFrame, str]:
    """Return a data frame of the features X and the labels y, and the name of the label column."""
    import pandas as pd

    with converted("easy(X, y)", ValueError, TypeError):
        if issparse(X):
            way = "save X and y by scikit-learn's dump_svmlight_file, and give the path of the file"
            raise ValueError(f"X is sparse; {way}")
        if issparse(y):
            raise ValueError("y is sparse; labels are dense, as y.toarray().ravel() is")
        frame = X if hasattr(X, "columns") else pd.DataFrame(X)
        if len(frame) != len(y):
            raise ValueError(f"X has {len(frame)} rows, y has {len(y)} labels")
        labels = getattr(y, "to_numpy", lambda: y)()
        if (ndim := getattr(labels, "ndim", 1)) != 1:
            raise ValueError(f"y has {ndim} dimensions; labels need one, as y.squeeze() has")
        name = next(n for n in ("label", "label_", "label__") if n not in frame.columns)
        return frame.assign(**{name: labels}), name


def by_metric(metric: str) -> list[str]:
    """Return overrides that select parameters by a metric and show it first."""
    if not isinstance(metric, str):
        raise UserError(f"metric must be the name of a metric, got {metric!r}")
    if metric == "accuracy":
        return []
    others = [name for name in ("accuracy", "balanced_accuracy", "auc") if name != metric]
    return [f"select.metric={metric}", f"metrics=[{', '.join([metric, *others])}]"]


def findings(folder: Path) -> Iterator[str]:
    """Yield what a table does not show: unrecognised classes, and the use of rows."""
    from mmbench.results.folder import read_results

    (found,) = read_results([folder])
    yield from unrecognised(found)
    accuracies: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    for key in found.by_cell:
        accuracies[key.machine] = [row.accuracy_pct for row in found.counted(key)]
        sizes[key.machine] = max((row.n_train for row in found.counted(key)), default=0)
    more, few = (accuracies.get(name, []) for name in ("svm", QUARTER))
    if len(more) == len(few) > 1:
        gains = [a - b for a, b in zip(more, few, strict=True)]
        error = stdev(gains) / len(gains) ** 0.5
        words = "more rows help" if mean(gains) > 2 * error else "no sign that more rows help"
        yield (
            f"SVM with {sizes[QUARTER]} and with {sizes['svm']} rows: {mean(few):.1f} and "
            f"{mean(more):.1f} % correct; {words} (--set machines.svm.max_train=N)"
        )


def unrecognised(found: Results) -> Iterator[str]:
    """Yield the classes of which no row is classified correctly, by any or by the best machine."""
    from mmbench.commands.refit import records_of

    hits: dict[str, dict[str, float]] = {}  # share of correct rows by machine and class
    for key in found.by_cell:
        rows = enumerate(found.confusion(key).items())
        hits[key.machine] = {label: row[k] / max(1, sum(row)) for k, (label, row) in rows}
    majority = hits.pop("majority", {})
    classes = [*next(iter(hits.values()), majority)]
    advice = "; try --metric balanced_accuracy"
    if lost := [c for c in classes if not any(shares.get(c) for shares in hits.values())]:
        yield f"no machine recognises class {listed(lost)}{advice}"
    first = next(iter(found.plan.metrics), "accuracy")
    with suppress(UserError):  # no machine has a finished record without failed fits
        best = records_of(found.folder)[0].job.column
        for label in classes:
            able = {name: mean(s.values()) for name, s in hits.items() if s.get(label)}
            if not able or hits.get(best, majority).get(label):
                continue
            other = max(able, key=lambda name: able[name])
            yield (
                f"{found.label(best)} has the best {first.replace('_', ' ')}, and is the machine "
                f"of --save, but recognises no row of class {label}; {found.label(other)} "
                f"recognises {100 * hits[other][label]:.0f} %"
                + advice
                * (first != "balanced_accuracy")
            )


def config_for(path: Path, target: Any, overrides: Iterable[str], every: bool, say: Say) -> Config:
    """Return the configuration that `easy` runs, adapted to the class sizes of the data."""
    from mmbench.config.read import config_of

    content = experiment_of(path, target, overrides, every)
    config = config_of(content, Path(f"easy {path.name}"), overrides)
    data = data_of(config)
    config = _for_sparse(config, say) if issparse(data.X) else config
    return _for_classes(_for_rows(config, len(data.y)), data.y, say)


def data_of(config: Config) -> Dataset:
    """Return the only data set of a configuration."""
    from mmbench.datasets.load import load_dataset
    from mmbench.reader.keys import SVMLIGHT, inner_path

    (entry,) = config.datasets
    # `load_dataset` checks the preprocessing steps but does not apply them; most steps would refuse
    # a sparse table
    is_svmlight = inner_path(entry.path or "").suffix.lower() in SVMLIGHT
    return load_dataset(entry.ref(() if is_svmlight else config.steps_of(entry)), store=Path())


def _for_rows(config: Config, n: int) -> Config:
    """Return a configuration in which machines with a kernel train on at most KERNEL_ROWS rows."""
    test = config.protocol.test
    n_train = n - n // int(test.arg or n) if test.rule == "kfold" else n
    machines = {}
    for name, entry in config.machines.items():
        most = entry.max_train
        if most is None and not entry.estimator and config.protocol.max_train is None:
            most = KERNEL_ROWS // 4 if name == QUARTER else KERNEL_ROWS
        if isinstance(most, int) and most < n_train:
            label = f"{entry.label or alias_of(config.machine_of(name)).label}, {most} rows"
            machines[name] = entry.model_copy(update={"max_train": most, "label": label})
        else:  # a number of rows per class is kept
            most = most if isinstance(most, dict) else None
            machines[name] = entry.model_copy(update={"max_train": most})
    if QUARTER in machines and not (n_train > KERNEL_ROWS and "svm" in machines):
        del machines[QUARTER]
    return config.model_copy(update={"machines": machines})


def _for_sparse(config: Config, say: Say) -> Config:
    """Return a configuration without steps and machines that need dense rows."""
    from mmbench.config.plan import need_dense_rows
    from mmbench.datasets.user_tables import KEEP_ZEROS

    (entry,), machines = config.datasets, config.machines
    if {step for step, _ in config.steps_of(entry)} - {*KEEP_ZEROS}:
        entry = entry.model_copy(update={"preprocess": ()})
    dense = {*need_dense_rows(config)}
    kept = {name: c for name, c in machines.items() if not {name, c.use} & dense} or machines
    left = listed([name for name in machines if name not in kept]) or "none"
    say(f"the table is sparse, and is not scaled; left out, as they need dense rows: {left}")
    return config.model_copy(update={"datasets": [entry], "machines": kept})


def _for_classes(config: Config, y: NDArray, say: Say) -> Config:
    """Return a configuration without the classes that have too few rows for the folds.

    If a random training subset would contain too few rows of a class, the maximum number of
    training rows is replaced by a maximum number per class.
    """
    from mmbench.reader.advice import in_yaml

    (entry,), protocol = config.datasets, config.protocol
    if protocol.test.rule != "kfold":
        _say_parts(config, len(y), say)
        return config
    counts = Counter(map(str, y.tolist()))
    folds, inner = int(protocol.test.arg or 0), config.select.ref.folds or 2
    # the training part of a split contains the rows of all folds except one
    kept = {c: n for c, n in counts.items() if n >= folds and n - -(-n // folds) >= inner}
    problem = ""
    if len(kept) < 2:
        _, n = [*counts.most_common(2), ("", 0)][1]
        problem = f"the second largest of {len(counts)} classes has {n} rows, 3 are needed; "
        problem += "choose another column by --target"
        if n >= 3:
            fewer = f"--set 'protocol.test={{kfold: {min(n, folds)}}}' --set select.folds=2"
            problem = f"only {len(kept)} classes have enough rows for {folds} folds; {fewer}"
    elif len(kept) > MAX_CLASSES and not entry.classes:
        some = in_yaml([c for c, _ in counts.most_common(5)])
        problem = f"{len(kept)} classes make {len(kept) * (len(kept) - 1) // 2} pairs; choose at "
        problem += f"most {MAX_CLASSES}, as by --set {shlex.quote(f'datasets[0].classes={some}')}"
    if problem:
        raise UserError(f"{entry.path}: {problem}")
    if len(kept) < len(counts) and not entry.classes:
        entry = entry.model_copy(update={"classes": tuple(sorted(kept))})
        rare = [c for c in counts if c not in kept]
        rows = sum(counts[c] for c in rare)
        say(f"left out: {rows} rows of classes with too few rows for {folds} folds: {listed(rare)}")
    n_train, rarest = (n * (folds - 1) // folds for n in (sum(kept.values()), min(kept.values())))

    def for_rare(limited: Any) -> Any:
        """Return the protocol or a machine's entry with a maximum number of rows per class."""
        most = limited.max_train
        if not isinstance(most, int) or most >= n_train or rarest * most / n_train >= inner + 1:
            return limited
        size = max(inner, -(-most // len(kept)))
        update: dict[str, Any] = {"max_train": {"per_class": size}}
        if hasattr(limited, "label"):  # a machine, whose label ends with the number of rows
            label = str(limited.label).removesuffix(f"{most} rows")
            update["label"] = f"{label}{size} rows per class"
        else:
            say(f"all machines train on at most {size} rows per class, as some classes are rare")
        return limited.model_copy(update=update)

    protocol = for_rare(protocol)
    machines = {name: for_rare(machine) for name, machine in config.machines.items()}
    if QUARTER in machines and type(machines[QUARTER].max_train) is not type(
        machines["svm"].max_train
    ):
        del machines[QUARTER]  # other shares of the classes are no effect of fewer rows
    changed = {"datasets": [entry], "protocol": protocol, "machines": machines}
    config = config.model_copy(update=changed)
    _say_parts(config, n_train, say)
    return config


def _say_parts(config: Config, n_train: int, say: Say) -> None:
    """Say which machines train on a part of the `n_train` rows."""
    if few := [str(e.label) for e in config.machines.values() if e.max_train]:
        say(f"of about {n_train} training rows, a random part is used: {listed(few)}")


def experiment_of(
    path: Path, target: str | int | None, overrides: Iterable[str] = (), every: bool = False
) -> dict[str, Any]:
    """Return the content of a YAML file for the comparison of machines on a data file.

    If `target` is a number but not the name of a column, the number is the position of the target
    column. The strings `overrides` may contain settings that are needed to read the column names.
    """
    from mmbench.config.files import load_yaml
    from mmbench.config.read import config_of
    from mmbench.datasets.card_files import card_names
    from mmbench.reader.formats import read_file
    from mmbench.reader.keys import inner_path, knows_target, no_file

    if not path.is_file():
        raise UserError(no_file(str(path), path))
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", inner_path(path).stem).strip("_-") or "data"
    label = f"my_{name}" if name in card_names() else name
    data: dict[str, Any] = {"path": str(path.resolve()), "name": label, "unlabelled": "drop"}
    content = {**load_yaml(EXPERIMENT), "name": f"easy_{name}", "datasets": [data]}
    more = content.pop("more")
    content["machines"] = content["machines"] | (more if every else {})
    columns: Sequence[str] = ()
    number = re.fullmatch("-?[0-9]+", str(target))
    if not knows_target(str(path)):
        data |= {"categorical": "auto", "target": str(target)}
        if target is None or number:
            options = config_of(content, Path(path.name), overrides).datasets[0].table
            with converted(str(path), ValueError):
                table = cast("DenseTable", read_file(path, options, -1))
                columns = list(table.frame.columns)
                target = table.own_target if target is None else target
        if target is None:
            raise UserError(f"{path}: state the class column by --target, one of {listed(columns)}")
    if target is not None:
        data["target"] = int(str(target)) if number and str(target) not in columns else str(target)
    return content
