"""Preprocessing steps of a configuration as a scikit-learn pipeline, fitted on training rows.

A configuration states one step or a list of steps:

- ``none``;
- ``standard``: mean 0 and standard deviation 1; ``minmax``: range [0, 1]. Both map constant columns
  to 0 and avoid division by 0;
- ``unit_norm``: Euclidean norm 1 of each row;
- ``sqrt``: square root of each value, for counts;
- ``{pca: 80}``: principal components, centred and not whitened;
- ``{divide: 255}``: division of all values by a constant;
- ``{impute: median}`` (or ``mean``, ``most_frequent``): replacement of missing values; missing
  categories are always replaced by the most frequent category;
- ``{impute_indicator: median}``: imputation, and an indicator column for each numeric column with
  missing values;
- ``one_hot`` and ``ordinal``: encodings of categories;
- ``{pair_pca: 100}``: principal components of single images, for rows that contain two images side
  by side;
- ``pair_features``: ``|a - b|`` and the elementwise product, for rows that contain two images a and
  b side by side;
- the path of a transformer with the interface of scikit-learn, with its parameters:
  ``{sklearn.preprocessing.QuantileTransformer: {n_quantiles: 50}}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mmbench.datasets.card import one_or_more
from mmbench.datasets.dataset import Steps
from mmbench.errors import converted, did_you_mean

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

#: Steps without an argument.
PLAIN = ("none", "standard", "minmax", "unit_norm", "sqrt", "pair_features")
#: Steps with a number of components as argument, and their output columns per component.
COMPONENTS = {"pca": 1, "pair_pca": 2}
#: Steps that replace missing values, and the values of their argument.
IMPUTERS = ("impute", "impute_indicator")
STRATEGIES = ("median", "mean", "most_frequent")
#: Steps that encode categories as numbers.
ENCODERS = ("one_hot", "ordinal")
NAMES = (*PLAIN, *COMPONENTS, "divide", *IMPUTERS, *ENCODERS)


def parse_steps(value: Any) -> Steps:
    """Read steps from YAML: ``minmax``, ``{pca: 80}``, or a list of these.

    Raises ValueError if a step does not exist or has a wrong argument.

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
            raise ValueError(f"a preprocessing step is a name or {{name: number}}, got {step!r}")
        steps += step.items()
    checked = tuple((name, _checked(name, argument)) for name, argument in steps)
    return checked if checked != (("none", None),) else ()


def is_path(name: Any) -> bool:
    """Return whether the name of a step is the path of a transformer of another package."""
    return isinstance(name, str) and "." in name


def from_path(name: str, parameters: Any = ()) -> Any:
    """Return the unfitted transformer at a path such as ``sklearn.preprocessing.PowerTransformer``.

    Raises ValueError if there is no transformer at this path, or if the transformer does not accept
    the parameters.
    """
    module, _, attribute = name.rpartition(".")
    with converted(f"{name} cannot be created", Exception, to=ValueError):
        made = getattr(import_module(module), attribute)(**dict(parameters or ()))
    if not (hasattr(made, "fit") and hasattr(made, "transform")):
        raise ValueError(f"{name} is not a transformer: fit or transform is missing")
    return made


def check_steps(
    steps: Steps, n_features: int, categorical: Sequence[str] = (), missing: str | None = None
) -> str | None:
    """Return the reason why preprocessing steps do not fit the data, or None if they fit.

    `n_features` includes the categorical columns, and `categorical` contains their names. `missing`
    describes the position (row and column) of the first missing value.

    Examples
    --------
    >>> check_steps((("pca", 80),), n_features=60)
    'pca: 80 components, but the data have 60 columns'
    """
    names = [name for name, _ in steps]
    if missing and not set(IMPUTERS) & set(names) and not any(map(is_path, names)):
        return f"{missing}; add a preprocessing step such as {{impute: median}}"
    first = next((name for name in names if name not in IMPUTERS), None)
    if categorical and first not in ENCODERS:
        needed = "the first preprocessing step, except for imputation, must be one_hot or ordinal"
        return f"column {categorical[0]!r} contains categories; {needed}"
    if categorical and "one_hot" in names:  # the number of columns depends on the training rows
        return None
    argument: Any
    for name, argument in steps:
        if name.startswith("pair_") and n_features % 2:
            return f"{name}: rows of pairs have an even number of columns, not {n_features}"
        if is_path(name):
            return None  # the number of output columns is unknown
        if name in COMPONENTS:
            if argument > n_features // COMPONENTS[name]:
                return f"{name}: {argument:g} components, but the data have {n_features} columns"
            n_features = int(argument) * COMPONENTS[name]
    return None


def make_preprocess(steps: Steps, n_categorical: int = 0) -> Pipeline:
    """Return the steps of `parse_steps` as one unfitted transformer.

    The last `n_categorical` columns contain category codes.

    Examples
    --------
    >>> scaled = make_preprocess(parse_steps("minmax")).fit_transform([[1.0, 7.0], [3.0, 7.0]])
    >>> scaled.tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    # imported here, since the import of scikit-learn takes a second and checks do not need it
    from sklearn.pipeline import Pipeline

    from mmbench.datasets.transformers import transformer

    def made(name: str, value: Any) -> Any:
        return from_path(name, value) if is_path(name) else transformer(name, value, n_categorical)

    named = enumerate(steps or (("none", None),))
    return Pipeline([(f"{k}_{name}", made(name, value)) for k, (name, value) in named])


def _checked(name: Any, argument: Any) -> Any:
    """Return the argument of a step in the form of `Steps`; raise ValueError if it is invalid."""
    if is_path(name):
        return _checked_parameters(name, argument)
    if name not in NAMES:
        raise ValueError(f"unknown preprocessing step {name!r}{did_you_mean(name, NAMES)}")
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
    if argument is not None and not isinstance(argument, Mapping):
        raise ValueError(f"{name} takes parameters as {{name: value}}, got {argument!r}")
    for parameter, value in (argument or {}).items():
        if value is not None and not isinstance(value, str | int | float):
            raise ValueError(f"{name}: {parameter} must be a word or a number, got {value!r}")
    parameters = tuple(sorted((argument or {}).items())) or None
    from_path(name, parameters)
    return parameters
