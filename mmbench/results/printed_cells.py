"""The cells of printed tables, with the quantities that follow from the printed numbers.

unit         the last printed digit: 0.1 for 97.3
pool         different rows on which errors are counted: the test rows of a single split, or
             all rows for several splits
binomial SE  sqrt(p (1 - p) / pool) for the accuracy p
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mmbench.results.published import AVERAGES, STANDARD_ERROR

#: Metrics of results. The value is 1 if larger numbers are better, and -1 if they are worse.
SIGN = {"accuracy_pct": 1, "error_pct": -1, "errors_count": -1, "seconds": -1}
#: Other names of metrics that describe a data set.
SYNONYMS = {"n_attributes": "n_features", "n_inputs": "n_features"}
#: Machines, and the machines that they contain for certain hyper-parameters: an RMM with a large B,
#: a Sigma-SVM with D = 0, and an R-SVM+ without a penalty on the radius are SVMs.
CONTAINS: Mapping[str, Iterable[str]] = {
    "rmm": ("svm", "rmm_c_equals_d"),
    **dict.fromkeys(("rmm_c_equals_d", "sigma_svm", "rsvm_plus"), ("svm",)),
}


@dataclass(frozen=True)
class Cells:
    """The cells of one or several tables.

    Attributes
    ----------
    all : DataFrame
        Every row of the tables, with the columns that `cells_of` adds.
    facts : dict
        Numbers that describe data sets: ``(data set, name) -> number``.
    contains : dict
        Machines, and the machines that each of them contains.
    """

    all: pd.DataFrame
    facts: Mapping[tuple[str, str], float]
    contains: Mapping[str, set[str]]

    @cached_property
    def results(self) -> pd.DataFrame:
        """Results of machines on single data sets, without empty cells."""
        chosen = self.all.metric.isin([*SIGN]) & ~self.all.dataset.isin(AVERAGES)
        return self.all[chosen & self.all.value.notna()].drop_duplicates(PLACE)

    def tables(self) -> Iterator[pd.DataFrame]:
        """Return the results of each table and metric."""
        yield from (part for _, part in self.results.groupby(["table", "metric"], sort=False))

    def related(self, first: str, second: str) -> bool:
        """Whether one of two machines contains the other."""
        return second in self.contains.get(first, ()) or first in self.contains.get(second, ())


#: Columns that name a cell.
PLACE = ["table", "dataset", "setting", "machine", "metric"]


def machine_key(name: str) -> str:
    """Return a name of a machine without its punctuation: ``R-SVM+`` and ``rsvm_plus`` agree."""
    return re.sub(r"[\W_]", "", name.lower().replace("+", "plus"))


def dataset_key(name: str) -> str:
    """Return a name of a data set as sorted words: ``Solar Flare`` and ``flare-solar`` agree."""
    return " ".join(sorted(re.findall(r"[^\W_]+", name.lower())))


def cells_of(
    frame: pd.DataFrame,
    facts: Mapping[tuple[str, str], float],
    contains: Mapping[str, Iterable[str]],
) -> Cells:
    """Return the cells of a frame with the columns of a published table and the column ``table``.

    The columns ``value`` and ``std`` are text as printed, since the decimals determine the unit.
    """
    frame = frame.assign(text=frame.value, printed=frame.machine)
    places = frame[["table", "dataset", "kernel", "degree", "machine"]].to_numpy()
    frame["cell"] = [f"{table}: {', '.join(filter(None, rest))}" for table, *rest in places]
    frame["setting"] = (frame.kernel + " " + frame.degree).str.strip()
    frame["dataset"] = frame.dataset.map(dataset_key)
    frame["machine"] = frame.machine.map(machine_key)
    frame["metric"] = frame.metric.replace(SYNONYMS)
    for name in ("value", "std"):
        exponents = [int(Decimal(text or 0).as_tuple().exponent) for text in frame[name]]
        frame[f"{name}_unit"], frame[name] = np.power(10.0, exponents), pd.to_numeric(frame[name])
    described = frame[frame.machine.eq("") & frame.value.notna()]
    own = zip(described.dataset, described.metric, strict=True)
    facts = {**facts, **dict(zip(own, described.value.astype(float), strict=True))}
    for column, name in (("rows", "n_samples"), ("classes", "n_classes"), ("top", "majority_pct")):
        frame[column] = [facts.get((d, name), math.nan) for d in frame.dataset]
    total = frame.n_train + frame.n_test
    frame["rows"] = np.fmax(frame.rows, total)
    frame["pool"] = frame.n_test.where(frame.n_splits.eq(1), frame.rows)
    count = frame.metric.eq("errors_count")
    frame["full"] = np.where(count, frame.n_test, 100.0)  # the value of all rows
    share = (frame.value / frame.full).mask(frame.metric.ne("accuracy_pct"), lambda p: 1 - p)
    frame["share"] = share.where(frame.metric.isin([*SIGN][:3]) & share.between(0, 1))
    # half a row is added to the errors, so that the standard error of 100 % is not 0
    p = (frame.share * frame["pool"] + 0.5) / (frame["pool"] + 1)
    frame["se"] = np.sqrt(p * (1 - p) / frame["pool"]) * frame.full
    step = np.where(count, 1.0, 100 / frame.n_test) / frame.n_splits
    step = step.where(frame.metric.ne("seconds"))
    frame["grain"] = np.fmax(frame.value_unit, step)
    # test parts that differ in size, as the folds of cross-validation, have no exact step
    even = frame.n_splits.eq(1) | (total % frame.n_test == 0) | (total < 1.5 * frame.n_test)
    frame["step"] = step.where(even)
    scale = np.sqrt(frame.n_splits.where(frame.std_is.eq(STANDARD_ERROR), 1.0))
    frame["sd"], frame["sd_error"] = frame["std"] * scale, frame.std_unit / 2 * scale
    related = {machine_key(key): set(map(machine_key, names)) for key, names in contains.items()}
    return Cells(frame.copy(), facts, related)  # a copy, since many columns were added


def lines(frame: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of a frame; their columns are attributes."""
    return iter(frame.itertuples())
