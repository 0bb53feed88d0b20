"""The keys, types and ranges in an experiment's YAML file.

The module `checks` compares values with known names.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.fields import FieldInfo

from mmbench.config.files import MAX_COUNTS, refuse_address
from mmbench.config.grids import distinct
from mmbench.config.values import (
    MAX_SPLITS,
    ONE_KEY,
    Classes,
    DataFile,
    ExperimentFile,
    Grid,
    Kernel,
    MaxTrainKey,
    Positive,
    PublishedTable,
    Seed,
    Several,
    StepList,
    Value,
)
from mmbench.datasets.dataset import SOURCES, SUITE, TASK, DatasetRef, Steps
from mmbench.datasets.partitions import RULES, SplitRule, parse_rule
from mmbench.errors import UserError, converted
from mmbench.jobs.job import NESTED, SelectRef, SplitRef
from mmbench.jobs.limits import Limits, parse_limits
from mmbench.kernels import KERNELS
from mmbench.plugins import import_path
from mmbench.reader.keys import (
    FileOptions,
    Forms,
    OneColumn,
    inner_path,
    may_state_target,
    one_or_more,
)
from mmbench.results.cells import check_metrics
from mmbench.selection.metrics import check_selectable

#: Batch systems on which jobs can run.
Queue = Literal["slurm", "pbs", "sge", "lsf"]
QUEUES = get_args(Queue)
#: Pattern of names of experiments, data sets and entries of ``machines``, and the same in words.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
NAME_FORM = "letters, digits, '-', '_' and '.', beginning with a letter or digit"
#: Advice in place of a name that looks like a path.
OWN_FILE = "a file of your own is {path: FILE, target: COLUMN}"


class Strict(BaseModel):
    """Base class for sections of a configuration. Unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DatasetEntry(Strict):
    """A data set of an experiment: the name of a card, or the source of a user's table with the
    keys for reading it.

    ``classes`` are the classes that are used, by default all. ``grid`` replaces values in the
    machines' grids. ``folds`` is the path of a file of folds, for the split rule ``predefined``.
    ``published_as`` is the name in a published table; if it is empty, the data set is not compared
    with published values. ``published_splits`` is the number of splits behind each published mean.
    """

    #: Path of a CSV (with any separator), ARFF, Parquet, npz or svmlight file, compressed or not.
    path: DataFile | None = None
    #: Number of a data set on OpenML.
    openml: Annotated[int, Field(ge=1)] | None = None
    #: Number of a classification task on OpenML; its splits are the rule ``predefined``.
    openml_task: Annotated[int, Field(ge=1)] | None = None
    #: Number of a suite on OpenML, in place of its tasks.
    openml_suite: Annotated[int, Field(ge=1)] | None = None
    #: Name of a data set in scikit-learn, such as ``wine`` for ``load_wine``.
    sklearn: str | None = None
    #: Column of the class labels; required for formats that do not define the labels, such as CSV.
    #: By default the target that OpenML or a file of KEEL states. If the file format defines the
    #: labels, another target raises an error.
    target: OneColumn = None
    name: str | None = Field(default=None, pattern=NAME_PATTERN)
    classes: Classes = ()
    preprocess: StepList | None = None
    grid: Grid = Field(default={})
    published_as: str | None = None
    published_splits: Positive | None = None
    folds: DataFile | None = None
    _table: FileOptions = PrivateAttr(default=FileOptions())

    @property
    def table(self) -> FileOptions:
        """Options for reading a user's table. In a YAML file, they are keys of the entry."""
        return self._table

    @model_validator(mode="wrap")
    @classmethod
    def _with_table(cls, content: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(content, dict):
            return handler(content)
        of_table = {key: content[key] for key in content if key in FileOptions.model_fields}
        entry = handler({key: content[key] for key in content if key not in of_table})
        entry._table = FileOptions.model_validate(of_table)
        stated = [key for key in ("path", *SOURCES) if getattr(entry, key) is not None]
        if len(stated) > 1:
            raise ValueError(f"give only one of {' and '.join(stated)}")
        keys = [key for key, _ in entry.table.pairs()] + ["target"] * (entry.target is not None)
        if keys and not stated:
            raise ValueError(f"{keys[0]} needs a table: add path, openml or sklearn")
        for key in ("target", "folds"):
            if {TASK, SUITE} & {*stated} and getattr(entry, key) is not None:
                raise ValueError(f"the task defines {key}; remove {key}, or use openml")
        if entry.openml_suite is not None and entry.name is not None:
            raise ValueError("a suite has several data sets; remove name")
        if entry.path is not None and entry.target is None and not may_state_target(entry.path):
            raise ValueError("target is missing: set it to the column of the classes")
        return entry

    @model_serializer(mode="wrap")
    def _beside_table(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {**self.table.model_dump(exclude_defaults=True), **handler(self)}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> Any:
        """Return the JSON Schema with the keys of `FileOptions`; pydantic calls this method."""
        reference = handler(core)
        own = handler.resolve_ref_schema(reference)
        own["properties"] = FileOptions.model_json_schema()["properties"] | own["properties"]
        return reference

    @property
    def source(self) -> str | None:
        """Source of a user's table, for example a path, openml:31 or sklearn:wine.

        None for a data set that is described by a card.
        """
        numbered = ((key, getattr(self, key)) for key in SOURCES)
        return next((f"{key}:{name}" for key, name in numbered if name is not None), self.path)

    @property
    def label(self) -> str:
        """Name of the data set in tables, such as openml_31, or ``my`` for ``data/my.csv.gz``."""
        source = str(self.source)
        of_source = inner_path(source).stem if self.path else source.replace(":", "_")
        return self.name if self.name is not None else of_source

    def ref(self, steps: Steps) -> DatasetRef:
        """Return the data set and its preprocessing steps in the form that a job stores."""
        parts = (self.source, self.target, steps, self.classes, self.table.pairs(), self.folds)
        return DatasetRef(self.label, *parts)


def keys_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the keys of a section; a data set has the keys of `FileOptions`, too."""
    of_table = FileOptions.model_fields if section is DatasetEntry else {}
    return {**of_table, **section.model_fields}


def _parse_test(value: Any) -> SplitRule:
    if not isinstance(value, str | dict):
        raise ValueError(f"must be one of {', '.join(RULES)}, got {value!r}")
    with converted("", UserError, OverflowError, to=ValueError):
        test = parse_rule(value)
    if (test.arg or 0) > MAX_SPLITS:
        raise ValueError(f"{test.rule} must be at most {MAX_SPLITS}, got {test.arg!r}")
    return test


class Protocol(Strict):
    """The rule of the train/test splits, with the number of repeats and the seed.

    Repeats of the split rule ``official`` have the same test rows; they differ only in random
    choices, such as the training rows that ``max_train`` keeps, inner folds, and ties of votes. If
    ``seed`` is a list, all jobs are run for each seed. ``max_train`` is the maximum number of
    training rows, in total or per class (``{per_class: NUMBER}``); a random stratified subset is
    used if a split has more. If it is a list, each subset is part of all larger ones.
    """

    test: Annotated[
        Any,
        PlainValidator(_parse_test),
        PlainSerializer(lambda test: test.spec),
        Forms(
            (
                {"enum": [rule for rule, kind in RULES.items() if kind == "none"]},
                {**ONE_KEY, "propertyNames": {"enum": [*RULES]}},
            )
        ),
    ]
    repeats: Positive | None = None
    seed: Several[Seed] = [0]
    max_train: MaxTrainKey = None

    @property
    def test_to_train(self) -> float:
        """Ratio of test rows to training rows, before ``max_train`` leaves out training rows.

        Without ``max_train``, and for rules other than ``holdout`` and ``kfold``, the value is 0,
        and tables compute the ratio from the records of the experiment.
        """
        shares = {"holdout": self.test.arg, "kfold": 1 / (self.test.arg or 1)}
        share = shares.get(self.test.rule, 0.0) if self.max_train else 0.0
        return share / (1 - share)

    @property
    def subsets(self) -> list[int | tuple[str, int] | None]:
        """Training sizes in ``max_train``, in the form of `SplitRef.max_train`."""
        given = self.max_train
        return [(NESTED, n) for n in given] if isinstance(given, list) else [_subset(given)]


def _subset(size: Any) -> int | tuple[str, int] | None:
    """Return one training size in the form of `SplitRef.max_train`."""
    return next(iter(size.items())) if isinstance(size, dict) else size


def _text_as(key: str) -> BeforeValidator:
    """Return a validator that replaces a text by the dict ``{key: text}``."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


def _named(value: Any) -> Any:
    """Return the entry of a data set that is given by its name alone."""
    if not isinstance(value, str):
        return value
    refuse_address(value)
    if "/" in value:
        raise ValueError(f"unknown data set {value!r}; {OWN_FILE}")
    return {"name": value}


def _checked(check: Callable[[Any], object], value: Any) -> Any:
    """Return a value if it passes a check, and convert a UserError of the check to a ValueError."""
    with converted("", UserError, to=ValueError):
        check(value)
    return value


Duration = Annotated[str | int | float, AfterValidator(partial(_checked, parse_limits))]
Memory = Annotated[str, AfterValidator(partial(_checked, lambda size: parse_limits(None, size)))]


class Select(Strict):
    """Parameter selection by cross-validation (``folds``) or random splits (``split``) of the
    training rows, or on the rows that ``max_train`` leaves out (``validation: rest``).

    The grid point with the best ``metric`` is selected; with ``validation: test``, the one with the
    best accuracy on the test rows. This makes accuracies too high, and serves to measure the bias
    of published results; every table states it.
    """

    folds: Annotated[int, Field(ge=2, le=MAX_SPLITS)] | None = None
    split: Annotated[float, Field(gt=0, lt=1)] | None = None
    validation: Literal["rest", "test"] | None = None
    repeats: Positive = 1
    scope: Literal["global", "pair"] = "global"
    prefer: dict[str, Literal["small", "large"]] = {}
    metric: Annotated[str, AfterValidator(partial(_checked, check_selectable))] = "accuracy"

    @model_validator(mode="after")
    def _one_way(self) -> Select:
        stated = [n for n in ("folds", "split", "validation") if getattr(self, n) is not None]
        if len(stated) > 1:
            raise ValueError(f"give only one of {' and '.join(stated)}")
        if self.validation is not None and self.repeats > 1:
            raise ValueError("validation is not repeated; remove repeats")
        for key, needed in (("scope", "global"), ("metric", "accuracy")):
            if self.validation == "test" and getattr(self, key) != needed:
                raise ValueError(f"validation: test needs {key}: {needed}")
        return self

    @property
    def ref(self) -> SelectRef:
        """The settings of parameter selection in a job, by default cross-validation with five
        folds.
        """
        folds = self.folds or (5 if self.split is None and self.validation is None else None)
        scope = "test" if self.validation == "test" else self.scope
        prefer = tuple(self.prefer.items())
        return SelectRef(folds, self.split, self.repeats, scope, prefer, self.metric)


def _one_size(value: Any) -> Any:
    if isinstance(value, list):
        raise ValueError("a machine has one number of training rows, not a list")
    return value


class MachineEntry(Strict):
    """An entry of ``machines``, shown as a column of tables: a machine with its parameters and
    grid.

    ``machine`` is not needed if the entry has the name of a machine. ``estimator`` is the import
    path of a classifier of another package, such as sklearn.ensemble.RandomForestClassifier.
    ``use`` names another entry, whose selected parameters are used. ``label`` is the heading in
    tables, ``calibrate`` the method of calibration, and ``max_train`` replaces the protocol's
    number of training rows.
    """

    machine: str | None = None
    estimator: str | None = None
    params: dict[str, Value] = {}
    grid: Grid = {}
    use: str | None = None
    kernel: Several[Kernel] | None = None
    label: Annotated[str, Field(min_length=1)] | None = None
    max_train: Annotated[MaxTrainKey, AfterValidator(_one_size)] = None
    calibrate: Literal["sigmoid", "isotonic"] | None = None

    def split_of(self, split: SplitRef) -> SplitRef:
        """Return the split with this machine's number of training rows, if stated."""
        return replace(split, max_train=_subset(self.max_train)) if self.max_train else split


#: Type of an entry of ``machines``. An entry without a value, as in ``svm:``, has default settings.
ColumnEntry = Annotated[
    MachineEntry,
    BeforeValidator(lambda v: {} if v is None else v),
    Forms(({"type": "null"},), more=True),
]


class JobLimits(Strict):
    """Limits of the time and memory of each job, such as ``{time: 1h, memory: 8 GB}``, and of the
    size of an experiment.

    Time and memory do not change the key of a job. ``jobs`` limits the jobs of the experiment,
    ``grid_points`` the grid points per machine, and ``entries`` both the data sets and the
    machines.
    """

    time: Duration | None = None
    memory: Memory | None = None
    jobs: Annotated[int, Field(ge=1)] = MAX_COUNTS["jobs"]
    grid_points: Annotated[int, Field(ge=1)] = MAX_COUNTS["grid_points"]
    entries: Annotated[int, Field(ge=1)] = MAX_COUNTS["entries"]

    @property
    def amounts(self) -> Limits:
        """The time limit in seconds and the memory limit in bytes."""
        return parse_limits(self.time, self.memory)


class QueueJobs(Strict):
    """The jobs of a batch system (such as Slurm) in which the worker processes run.

    The keys ``cores``, ``memory`` and ``walltime`` state the resources of each batch-system job.
    The key ``jobs`` is the maximum number of batch-system jobs at the same time. The key
    ``options`` contains further arguments of dask-jobqueue, such as ``queue``, ``account`` and
    ``interface``.
    """

    cores: Positive
    memory: Memory
    walltime: Duration
    jobs: Positive = 1
    options: dict[str, Any] = {}

    def arguments(self, queue: str) -> dict[str, Any]:
        """Return the arguments of dask-jobqueue's class for the batch system `queue`."""
        limits = parse_limits(self.walltime, self.memory)
        minutes, seconds = divmod(int(limits.time or 0), 60)
        # the batch system LSF accepts a time limit only in hours and minutes
        walltime = f"{minutes // 60:02}:{minutes % 60:02}" + f":{seconds:02}" * (queue != "lsf")
        memory = f"{limits.memory:.0f} B"
        return {"cores": self.cores, "memory": memory, "walltime": walltime, **self.options}


class ParametersFrom(Strict):
    """Another experiment, from which this experiment takes the selected parameters.

    By default, each split uses the parameters that the other experiment selected on the same split.
    If ``splits`` is given, every split uses the medians of the parameters that the other experiment
    selected on its first ``splits`` splits.
    """

    experiment: ExperimentFile
    splits: Positive | None = None


#: Further forms in YAML: text for a mapping or list, and a list in place of ``machines``.
TEXT_TOO = Forms(({"type": "string"},), more=True)
LIST_TOO = Forms(({"type": "array", "items": {"type": ["string", "object"]}},), more=True)


class Config(Strict):
    """Configuration of an experiment."""

    name: str = Field(pattern=NAME_PATTERN)
    datasets: list[Annotated[DatasetEntry, BeforeValidator(_named), TEXT_TOO]] = Field(min_length=1)
    preprocess: StepList = ()
    kernel: Several[Kernel] = ["rbf"]
    degree: Several[Positive] | None = None
    gamma_scaling: Literal["none", "per_feature", "variance"] = "none"
    kernel_scaling: Literal["none", "trace"] = "none"
    protocol: Protocol
    select: Select = Select()
    ties: Literal["lowest", "random", "expected"] = "lowest"
    machines: Annotated[dict[str, ColumnEntry], Field(min_length=1), LIST_TOO]
    parameters_from: Annotated[ParametersFrom, _text_as("experiment"), TEXT_TOO] | None = None
    limits: JobLimits = JobLimits()
    cluster: Annotated[dict[Queue, QueueJobs], Field(min_length=1, max_length=1)] | None = None
    published: PublishedTable = ()
    published_only: Annotated[list[str], AfterValidator(distinct)] = []
    published_splits: Positive | None = None
    metrics: Annotated[
        list[str],
        BeforeValidator(lambda value: _checked(check_metrics, one_or_more(value))),
        Forms(single=True),
    ] = []
    layout: Annotated[
        list[str], BeforeValidator(one_or_more), Field(min_length=1), Forms(single=True)
    ] = ["generic"]
    _source: Config | None = PrivateAttr(default=None)

    @property
    def source(self) -> Config | None:
        """The experiment that the key ``parameters_from`` names, or None without this key."""
        return self._source

    def with_source(self, source: Config) -> Config:
        """Return a copy that uses the parameters selected in the experiment `source`."""
        copy = self.model_copy()
        copy._source = source
        return copy

    def machine_of(self, column: str) -> str:
        """Return the machine of an entry of ``machines``: a name, or the import path of a
        classifier.
        """
        entry = self.machines[column]
        return import_path(entry.estimator) if entry.estimator else entry.machine or column

    def kernels_of(self, column: str) -> list[str]:
        """Return the kernels with which the machine of an entry of ``machines`` is run.

        The experiment's kernels do not apply to a classifier of another package. Unless its entry
        states kernels, it is run once, and listed in tables under the experiment's first kernel.
        """
        entry = self.machines[column]
        if entry.kernel or not entry.estimator:
            return entry.kernel or self.kernel
        own = entry.params.get("kernel")
        return [own] if own in KERNELS else self.kernel[:1]

    @property
    def published_names(self) -> dict[str, str]:
        """Names of the data sets in the published table, if they differ from the names here.

        An empty name means that a data set is not compared with published values, by default if
        only some of its classes are used.
        """
        return {
            entry.label: entry.published_as or ""
            for entry in self.datasets
            if entry.classes or entry.published_as is not None
        }

    def steps_of(self, entry: DatasetEntry) -> Steps:
        """Return the preprocessing steps for a data set."""
        return self.preprocess if entry.preprocess is None else entry.preprocess


def schema() -> str:
    """Return the JSON Schema of configurations, for editors that complete and check YAML files."""
    content = Config.model_json_schema()
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**dialect, **content, "title": "mmbench experiment"}, indent=1) + "\n"
