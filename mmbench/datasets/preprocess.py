"""Preprocessing steps of a configuration as a scikit-learn pipeline, fitted on training rows.

docs/keys.md lists the steps. A transformer that uses labels is fitted again in each inner fold,
without the held-out rows.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmbench.datasets.dataset import Steps
from mmbench.errors import UserError, check_known, converted
from mmbench.plugins import estimator_maker, import_path, in_declared_types
from mmbench.reader.keys import one_or_more

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

#: Names of preprocessing steps without an argument.
PLAIN = ("none", "standard", "minmax", "unit_norm", "sqrt", "pair_features")
#: Number of output columns per component, for steps whose argument is a number of components.
COMPONENTS = {"pca": 1, "pair_pca": 2}
#: Names of the steps that replace missing values (IMPUTERS), and valid arguments of these steps
#: (STRATEGIES).
IMPUTERS = ("impute", "impute_indicator")
STRATEGIES = ("median", "mean", "most_frequent")
#: Names of the steps that encode categories as numbers.
ENCODER_NAMES = ("one_hot", "ordinal")
STEP_NAMES = (*PLAIN, *COMPONENTS, "divide", *IMPUTERS, *ENCODER_NAMES)
#: Packages of scikit-learn whose transformers use no labels, unless their tags require labels.
WITHOUT_LABELS = tuple(
    f"sklearn.{name}."
    for name in (
        "cluster",
        "decomposition",
        "feature_extraction",
        "impute",
        "kernel_approximation",
        "manifold",
        "preprocessing",
        "random_projection",
    )
)


def parse_steps(value: Any) -> Steps:
    """Convert steps in YAML (``minmax``, ``{pca: 80}`` or a list) to pairs (name, argument).

    Raises ValueError if a step does not exist or has an invalid argument.

    Examples
    --------
    >>> parse_steps(["minmax", {"pca": 80}])
    (('minmax', None), ('pca', 80))
    >>> parse_steps("none")
    ()
    """
    steps: list[tuple[str, Any]] = []
    for step in one_or_more(value):
        if isinstance(step, str):
            step = {step: None}
        if not isinstance(step, Mapping) or len(step) != 1:
            forms = "a name or {name: number}, or {import path: {parameter: value}}"
            raise ValueError(f"a preprocessing step is {forms}, got {step!r}")
        steps += step.items()
    checked = tuple((name, _checked(name, argument)) for name, argument in steps)
    return checked if checked != (("none", None),) else ()


def is_path(name: Any) -> bool:
    """Return whether the name of a preprocessing step is the import path of a transformer."""
    return isinstance(name, str) and "." in name


def from_path(name: str, parameters: Any = ()) -> Any:
    """Return the unfitted transformer `name`, created with `parameters`.

    `name` is an import path such as ``sklearn.preprocessing.PowerTransformer``. Raises ValueError
    if there is no transformer with this import path, or if the transformer does not accept
    `parameters`.
    """
    with converted("", UserError, to=ValueError):
        make = estimator_maker(import_path(name), ("fit", "transform"), "transformer")
    with converted(f"{name} cannot be created", Exception, to=ValueError):
        given = inspect.signature(make).parameters
        defaults = {key: parameter.default for key, parameter in given.items()}
        made = make(**in_declared_types(dict(parameters or ()), defaults))
    if not (hasattr(made, "fit") and hasattr(made, "transform")):
        raise ValueError(f"{name} is not a transformer: fit or transform is missing")
    return made


def check_steps(
    steps: Steps, n_features: int, categorical: Sequence[str] = (), missing: str | None = None
) -> str | None:
    """Return a message if preprocessing steps cannot be applied to the data, otherwise None.

    `n_features` is the number of columns of the data. `categorical` contains the names of the
    categorical columns. `missing` is text with the row and the column of the first missing value,
    or None.

    Examples
    --------
    >>> check_steps((("pca", 80),), n_features=60)
    'pca: 80 components, but the data have 60 columns'
    """
    names = [name for name, _ in steps]
    if missing and not set(IMPUTERS) & set(names) and not any(map(is_path, names)):
        return f"{missing}: value missing; add a preprocessing step such as {{impute: median}}"
    if categorical and next((n for n in names if n not in IMPUTERS), None) not in ENCODER_NAMES:
        needed = "the first preprocessing step, except for imputation, must be one_hot or ordinal"
        return f"column {categorical[0]!r} contains categories; {needed}"
    if categorical and "one_hot" in names:  # the number of columns after one_hot is unknown
        return None
    argument: Any
    for name, argument in steps:
        if name.startswith("pair_") and n_features % 2:
            return f"{name}: rows of pairs have an even number of columns, not {n_features}"
        if is_path(name):
            return None  # a transformer does not state its number of output columns before `fit`
        if name in COMPONENTS:
            if argument > n_features // COMPONENTS[name]:
                return f"{name}: {argument:g} components, but the data have {n_features} columns"
            n_features = int(argument) * COMPONENTS[name]
    return None


def make_preprocess(steps: Steps, n_categorical: int = 0, random_state: int = 0) -> Pipeline:
    """Return preprocessing steps as one unfitted scikit-learn pipeline.

    The last `n_categorical` columns of the data contain category codes. If a transformer has a
    parameter ``random_state`` with the value None, the parameter is set to the argument
    `random_state`.

    Examples
    --------
    >>> scaled = make_preprocess(parse_steps("minmax")).fit_transform([[1.0, 7.0], [3.0, 7.0]])
    >>> scaled.tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    # scikit-learn is imported here, not at the top of the module, since the import takes a second,
    # and `check_steps` works without scikit-learn
    from sklearn.pipeline import Pipeline

    from mmbench.datasets.transformers import transformer

    def made(name: str, value: Any) -> Any:
        return from_path(name, value) if is_path(name) else transformer(name, value, n_categorical)

    named = enumerate(steps or (("none", None),))
    pipeline = Pipeline([(f"{k}_{name}", made(name, value)) for k, (name, value) in named])
    known = pipeline.get_params().items()
    random = [name for name, value in known if name.endswith("__random_state") and value is None]
    return pipeline.set_params(**dict.fromkeys(random, random_state))


def use_labels(steps: Pipeline) -> bool:
    """Return whether a step may use labels, as the selection of features does.

    Steps that are given by an import path use labels, unless they are known not to. scikit-learn's
    tags do not suffice, since they state that `SelectPercentile` requires no labels.
    """
    from sklearn.utils import get_tags

    given = (step for name, step in steps.steps if is_path(name))
    return any(
        not type(step).__module__.startswith(("mmbench.", *WITHOUT_LABELS))
        or get_tags(step).target_tags.required
        for step in given
    )


def _checked(name: Any, argument: Any) -> Any:
    """Return the argument of a step; raise ValueError if the step or its argument is invalid."""
    if is_path(name):
        return _checked_parameters(name, argument)
    check_known(name, STEP_NAMES, "unknown preprocessing step", ValueError)
    number = isinstance(argument, int | float) and not isinstance(argument, bool)
    if name == "divide":
        fits, needs = number and 0 < argument < float("inf"), "a number above 0"
    elif name in COMPONENTS:
        fits = number and 1 <= argument < float("inf") and argument == int(argument)
        needs = "a whole number of components of at least 1"
    elif name in IMPUTERS:
        fits, needs = argument in STRATEGIES, f"one of {', '.join(STRATEGIES)}"
    else:
        fits, needs = argument is None, "no number"
    if not fits:
        raise ValueError(f"{name} needs {needs}, got {argument!r}")
    return argument


def _checked_parameters(name: str, argument: Any) -> tuple[tuple[str, Any], ...] | None:
    """Return a transformer's parameters as sorted pairs (name, value) with tuples for lists."""
    if argument is not None and not isinstance(argument, Mapping):
        raise ValueError(f"{name} takes parameters as {{name: value}}, got {argument!r}")
    given = sorted((argument or {}).items())
    parameters = tuple((key, tuple(v) if isinstance(v, list) else v) for key, v in given)
    for key, value in parameters:
        for part in value if isinstance(value, tuple) else (value,):
            finite = not isinstance(part, float) or math.isfinite(part)
            if not finite or not isinstance(part, str | int | float | None):
                raise ValueError(f"{name}: {key} takes words or finite numbers, got {value!r}")
    from_path(name, parameters)
    return parameters or None
