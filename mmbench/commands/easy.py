"""``mmbench easy``: compare machines on one data file, without a configuration file."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scipy.sparse import issparse

from mmbench.commands.options import Say, options_of, to_stderr
from mmbench.commands.run import run
from mmbench.errors import UserError, converted, listed
from mmbench.jobs.disk import write_atomically
from mmbench.jobs.store import CONFIG
from mmbench.reader.file_text import is_number
from mmbench.reader.text_tables import as_pandas, neither, without_bytes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from mmbench.commands.outputs import TableText
    from mmbench.config.model import Config
    from mmbench.datasets import Dataset

__all__ = ["Comparison", "easy"]

#: YAML file of the comparison, without a data set. The key ``more`` contains the machines that run
#: only if `all_machines` is true.
EXPERIMENT = Path(__file__).with_name("easy.yaml")
#: Maximum number of classes. The number of classifiers, one per pair of classes, grows with the
#: square of the number of classes.
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
    data: str | Path | pd.DataFrame,
    target: str | int | None = None,
    results: str | Path | None = None,
    *,
    all_machines: bool = False,
    say: Say = to_stderr,
    **options: Any,
) -> Comparison:
    """Compare machines on one data file or data frame.

    Parameters
    ----------
    data : path or DataFrame
        A data file (CSV, ARFF, Parquet, svmlight or npz), or a data frame, also of polars or
        pyarrow if the extra ``parquet`` is installed. A data frame is written
        to a file ``frame_HASH.csv`` in `results`, where HASH is a hash of the content. Since a
        header of numbers would be read as a row of data, a column with the number 3 as name is
        renamed to ``column_3``.
    target : str or int, optional
        Column of the class labels; not needed if the file format determines this column.
    results : path, optional
        Folder in which a results folder for this comparison is created, by default ``results``.
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
    from pandas.api.types import is_hashable

    from mmbench.commands.outputs import TableText, figure, table

    given = options_of(results, options)
    frame: Any = data if isinstance(data, str | Path) else as_pandas(data)
    problem = ""
    if not is_hashable(target):
        problem = f"target must be the name of a column, not labels ({type(target).__name__})"
    elif not (isinstance(data, str | Path) or hasattr(frame, "select_dtypes")):
        problem = f"a path or a data frame is needed, got {type(data).__name__}"
    if problem:
        example = "pandas.DataFrame(X).assign(label=y), with target='label'"
        raise UserError(f"{problem}; use {example}")
    overrides = [*given.set]
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
            write_atomically(data, lambda file: file.write(content))
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
    say(f"another metric: mmbench table {folder} --metric mcc; the experiment: {folder / CONFIG}")
    return Comparison(text, folder, finished.exit_code)


def config_for(
    path: Path, target: str | int | None, overrides: Iterable[str], every: bool, say: Say
) -> Config:
    """Return the configuration that `easy` runs, adapted to the class sizes of the data."""
    from mmbench.config.read import config_of

    content = experiment_of(path, target, overrides, every)
    config = config_of(content, Path(f"easy {path.name}"), overrides)
    data = data_of(config)
    return _for_classes(_for_sparse(config, say) if issparse(data.X) else config, data.y, say)


def data_of(config: Config) -> Dataset:
    """Return the only data set of a configuration."""
    from mmbench.datasets import load_dataset
    from mmbench.reader.keys import SVMLIGHT, inner_path

    (entry,) = config.datasets
    # `load_dataset` checks the preprocessing steps but does not apply them; most steps would refuse
    # a sparse table
    is_svmlight = inner_path(entry.path or "").suffix.lower() in SVMLIGHT
    return load_dataset(entry.ref(() if is_svmlight else config.steps_of(entry)), store=Path())


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
    most = protocol.max_train
    if isinstance(most, int) and most < n_train and rarest * most / n_train < inner + 1:
        size = max(inner, -(-most // len(kept)))
        protocol = protocol.model_copy(update={"max_train": {"per_class": size}})
        say(f"trains on at most {size} rows of each class, as some classes are rare")
    return config.model_copy(update={"datasets": [entry], "protocol": protocol})


def experiment_of(
    path: Path, target: str | int | None, overrides: Iterable[str] = (), every: bool = False
) -> dict[str, Any]:
    """Return the content of a YAML file for the comparison of machines on a data file.

    If `target` is a number but not the name of a column, the number is the position of the target
    column. The strings `overrides` may contain settings that are needed to read the column names.
    """
    from mmbench.config.files import load_yaml
    from mmbench.config.read import config_of
    from mmbench.datasets import card_names
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
                columns = list(read_file(path, options, -1).frame.columns)  # type: ignore[union-attr]
        if target is None:
            raise UserError(f"{path}: state the class column by --target, one of {listed(columns)}")
    if target is not None:
        data["target"] = int(str(target)) if number and str(target) not in columns else str(target)
    return content
