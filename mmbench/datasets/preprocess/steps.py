"""Preprocessing steps of a configuration as a scikit-learn pipeline, fitted on training rows.

``none``, ``standard`` (mean 0, deviation 1), ``minmax`` (range [0, 1]), ``unit_norm`` (each row has
Euclidean norm 1), ``sqrt`` (of each value, for counts), ``{pca: 80}`` (centred, not whitened),
``{divide: 255}``, or a list of them. Constant columns become 0 and never divide by 0.

For rows that hold two images side by side: ``{pair_pca: 100}`` (of single images) and
``pair_features`` (``|a - b|`` and the elementwise product).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Step = str | Mapping[str, Any]

PLAIN_STEPS = ("none", "standard", "minmax", "unit_norm", "sqrt", "pair_features")
NUMBER_STEPS = ("pca", "divide", "pair_pca")


def check_steps(steps: Step | Sequence[Step], n_features: int | None = None) -> str | None:
    """Return what is wrong with preprocessing steps as one line, or None.

    Parameters
    ----------
    steps : str, mapping, or list of these
    n_features : int, optional
        Number of columns of the data, where known.

    Examples
    --------
    >>> check_steps(["minmax", {"pca": 80}])
    >>> check_steps("min_max")
    "unknown preprocessing step 'min_max'; did you mean 'minmax'?"
    """
    if not isinstance(steps, str | Mapping | Sequence):
        return f"preprocessing is a step or a list of steps, got {steps!r}"
    for step in _as_list(steps):
        problem = _check_step(step, n_features)
        if problem:
            return problem
        name, number = _name_and_number(step)
        if name in ("pca", "pair_pca"):  # what later steps see
            n_features = int(number) * (2 if name == "pair_pca" else 1)
    return None


def make_preprocess(steps: Step | Sequence[Step]) -> Pipeline:
    """Return the steps as one unfitted transformer.

    Parameters
    ----------
    steps : str, mapping, or list of these

    Raises
    ------
    UserError
        If a step does not exist or its number is wrong.

    Examples
    --------
    >>> scaled = make_preprocess("minmax").fit_transform([[1.0, 7.0], [3.0, 7.0]])
    >>> scaled.tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    from sklearn.pipeline import Pipeline

    problem = check_steps(steps)
    if problem:
        raise UserError(problem)
    named = [_name_and_number(step) for step in _as_list(steps)]
    return Pipeline(
        [(f"{k}_{name}", _MAKERS[name](number)) for k, (name, number) in enumerate(named)]
        or [("0_none", _MAKERS["none"](None))]
    )


def _as_list(steps: Step | Sequence[Step]) -> list[Step]:
    return [steps] if isinstance(steps, str | Mapping) else list(steps)


def _name_and_number(step: Step) -> tuple[str, Any]:
    return (step, None) if isinstance(step, str) else next(iter(step.items()))


def _check_step(step: Any, n_features: int | None) -> str | None:
    if not isinstance(step, str | Mapping) or (isinstance(step, Mapping) and len(step) != 1):
        return f"a preprocessing step is a name or {{name: number}}, got {step!r}"
    name, number = _name_and_number(step)
    if name not in _MAKERS:
        return f"unknown preprocessing step {name!r}{did_you_mean(name, _MAKERS)}"
    if name in PLAIN_STEPS:
        problem = f"{name} takes no number, got {number!r}" if number is not None else None
    else:
        problem = _check_number(name, number, n_features)
    if problem is None and name.startswith("pair_") and n_features is not None and n_features % 2:
        return f"{name}: rows of pairs have an even number of columns, not {n_features}"
    return problem


def _check_number(name: str, number: Any, n_features: int | None) -> str | None:
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if name == "divide":
        good = is_number and number > 0 and number < float("inf")
        return None if good else f"divide needs a number above 0, got {number!r}"
    if not is_number or not 1 <= number < float("inf") or number != int(number):
        return f"{name} needs a whole number of components of at least 1, got {number!r}"
    if n_features is not None and number > n_features // (2 if name == "pair_pca" else 1):
        return f"{name}: {number:g} components of data with {n_features} columns"
    return None


def _identity(_: None) -> Any:
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(feature_names_out="one-to-one")


def _standard(_: None) -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler()


def _minmax(_: None) -> Any:
    from sklearn.preprocessing import MinMaxScaler

    return MinMaxScaler()


def _unit_norm(_: None) -> Any:
    from sklearn.preprocessing import Normalizer

    return Normalizer("l2")


def _pca(n_components: float) -> Any:
    """Return a PCA by the eigenvalues of the covariance matrix: exact, and no random numbers."""
    from sklearn.decomposition import PCA

    return PCA(int(n_components), svd_solver="covariance_eigh")


def _pair_pca(n_components: float) -> Any:
    from mmbench.datasets.preprocess.pair_steps import PairPCA

    return PairPCA(int(n_components))


def _pair_features(_: None) -> Any:
    from mmbench.datasets.preprocess.pair_steps import pair_features

    return _function(pair_features)


def _sqrt(_: None) -> Any:
    return _function(_square_root)


def _square_root(X: Any) -> Any:
    """Return square roots; a negative value keeps its sign."""
    import numpy as np

    X = np.asarray(X, dtype=np.float64)
    return np.sign(X) * np.sqrt(np.abs(X))


def _function(function: Callable[[Any], Any]) -> Any:
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(function)


def _divide(number: float) -> Any:
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(_true_divide, kw_args={"by": number}, feature_names_out="one-to-one")


def _true_divide(X: Any, by: float) -> Any:
    """Divide as float64; a function of the module so that a fitted pipeline can be pickled."""
    return X / float(by)


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "none": _identity,
    "standard": _standard,
    "minmax": _minmax,
    "unit_norm": _unit_norm,
    "sqrt": _sqrt,
    "pca": _pca,
    "divide": _divide,
    "pair_pca": _pair_pca,
    "pair_features": _pair_features,
}
