"""Margin ratio and test accuracy of each pair of classes, and the regression line through them.

The MMRM paper prints the least-squares line of its figure 2. The margin ratio rho of a pair is
computed from the training rows; the accuracy is measured by the machine of the pair on the test
rows of the two classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

#: Minimum number of separable pairs for a regression line.
MIN_POINTS = 3


def pair_points(
    per_pair: Sequence[Mapping[str, Any]], arrays: Mapping[str, NDArray]
) -> pd.DataFrame:
    """Return one row per pair of classes with a margin ratio and test rows.

    `per_pair` are the certificates in an MMRM's record. `arrays` are the record's arrays:
    ``decisions`` of shape (n_test, n_pairs) and ``y_test``. Column k of ``decisions`` belongs to
    ``per_pair[k]``; decision values of at least 0 predict the second class of the pair. The columns
    of the result are pair, ratio, accuracy (%) and separable.
    """
    import pandas as pd

    truth = arrays["y_test"].astype(str)
    points = []
    for fit, decisions in zip(per_pair, arrays["decisions"].T, strict=True):
        negative, positive = map(str, fit["pair"])
        rows = (truth == negative) | (truth == positive)
        ratio, separable = fit["extra"].get("margin_ratio"), fit["extra"].get("separable", True)
        if ratio is not None and rows.any():
            accuracy = 100 * np.mean((decisions[rows] >= 0) == (truth[rows] == positive))
            points.append((f"{negative}/{positive}", ratio, accuracy, bool(separable)))
    return pd.DataFrame(points, columns=["pair", "ratio", "accuracy", "separable"])


def fit_line(points: pd.DataFrame) -> Any:
    """Return scipy's linear regression of accuracy on margin ratio over separable pairs.

    The result is None if there are fewer than `MIN_POINTS` separable pairs, or if all have the same
    margin ratio.
    """
    from scipy.stats import linregress

    points = points[points.separable]
    if len(points) < MIN_POINTS or np.ptp(points.ratio) == 0:
        return None
    return linregress(points.ratio, points.accuracy)
