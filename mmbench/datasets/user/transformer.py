"""Transformer that prepares rows of a user's table for a fitted model.

This module is imported only if a model is fitted for the user, since importing scikit-learn takes a
second.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin

from mmbench.datasets.parsers.arff_files import (
    as_pandas,
    clean_words,
    neither,
    without_bytes,
    without_codes,
)
from mmbench.datasets.parsers.text_files import is_number
from mmbench.datasets.user.formats import MISSING_WORDS, as_text
from mmbench.datasets.user.keys import FileOptions
from mmbench.datasets.user.table_columns import number_column
from mmbench.errors import listed

#: Words that ``pandas.read_csv`` reads as missing values, unless ``keep_default_na`` is False.
PANDAS_WORDS = {"#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}


class TableColumns(TransformerMixin, BaseEstimator):
    """Convert rows of a table to numbers and category codes, in the column order of `Dataset.X`.

    All unknown categories of a column get the same additional code. Missing values are NaN.
    Blanks around words and in column names are ignored, as in a CSV file.

    Parameters
    ----------
    columns : dict
        Categories of each column, or None for a numeric column; see `Dataset.columns`.
    options : iterable of (key, value) pairs
        Options for reading the table; see `DatasetRef.options`. The words of the option `missing`
        denote a missing value, unless they are categories of the column. The options `decimal`,
        `thousands` and `units` apply to numbers that are stored as text.

    Examples
    --------
    >>> table = TableColumns({"colour": ("blue", "red"), "size": None})
    >>> table.fit_transform([["red", 3.5], ["green", 1]]).tolist()
    [[3.5, 1.0], [1.0, 2.0]]
    """

    def __init__(self, columns: dict[str, Any], options: Iterable[tuple[str, Any]] = ()):
        self.columns, self.options = columns, options

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing, since the columns and their categories are constructor parameters."""
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return rows as numbers and category codes.

        Columns of a DataFrame (of pandas, polars or pyarrow) are found by name, and columns of an
        array are found by position. If the table has no header, column 0 of a DataFrame is the
        first column of the table. Warns about columns in which all categories are unknown, about
        unknown categories that are equal to known categories as numbers (such as 9 and 09), about
        categories that pandas may have replaced by missing values, and about columns that pandas
        may have renamed because of a repeated name.
        """
        import pandas as pd

        given: dict[str, Any] = {"missing": MISSING_WORDS, **dict(self.options)}
        options, missing = FileOptions.model_construct(**given), given["missing"]
        names, X = list(self.columns), as_pandas(X)
        if not isinstance(X, pd.DataFrame):
            X = np.asanyarray(X.toarray() if issparse(X) else X, dtype=object)
            if X.ndim != 2 or X.shape[1] != len(names):
                shapes = f"X has shape {X.shape}, but the table has the columns {names}"
                raise ValueError(f"{shapes}; give these columns, or a data frame with these names")
            X = pd.DataFrame(X, columns=names).infer_objects()
        if not options.header and 0 in X.columns:  # pandas counts columns from 0
            X = X.rename(columns=lambda name: name + 1 if isinstance(name, int) else name)
        # The function `easy` renames column 3 of a data frame to column_3. In a file without a
        # header, the name of column 3 is "3".
        own = {c: n for c in X if not isinstance(c, str) and (n := f"column_{c}") in self.columns}
        X = X.set_axis([own.get(c, str(c)) for c in X], axis=1).reset_index(drop=True)
        clean = {" ".join(name.split()): name for name in reversed(X.columns)}
        X = X.rename(columns={clean[n]: n for n in names if n in clean and n not in X.columns})
        counts = Counter(X.columns)
        if lacking := [name for name in names if counts[name] != 1]:
            number = "several columns" if counts[lacking[0]] else "no column"
            raise ValueError(f"X has {number} {lacking[0]!r}")
        if X.empty or any(odd := [*filter(None, map(neither, (X[name] for name in names)))]):
            raise ValueError("X has no rows" if X.empty else odd[0])
        for name in (n for n in names if f"{n}.1" in X.columns and f"{n}.1" not in self.columns):
            warn(f"X has the columns {name!r} and '{name}.1'; {name!r} is used", stacklevel=2)
        for name in (n for n in names if X[n].dtype.kind not in "biuf"):
            cells = X[name].astype(object)
            words = without_bytes(cells.where(cells.notna()), options.encoding)
            X[name] = clean_words(words, missing, self.columns[name] or ())
            lost = PANDAS_WORDS.intersection(self.columns[name] or ())
            if lost and cells.isna().any():
                has = f"column {name!r} has missing values; pandas.read_csv reads the category"
                warn(f"{has} {min(lost)!r} only if keep_default_na=False", stacklevel=2)
            if self.columns[name] is None:
                # a CSV column of the words True and False is read as numbers 1 and 0
                folded = X[name].map(lambda cell: str(cell).casefold(), na_action="ignore")
                truths = folded.dropna().isin(["true", "false"]).all()
                X[name] = folded.eq("true").where(folded.notna()) if truths else X[name]
                X[name] = number_column(X[name], options)
        X = without_codes(X[names], missing)
        numbers, codes = [X[name] for name, known in self.columns.items() if known is None], []
        for name, values in self.columns.items():
            if values is not None:
                text = X[name].map(as_text, na_action="ignore")
                known = text.map({value: k for k, value in enumerate(values)}).astype(np.float64)
                unknown = text[known.isna()].dropna().unique().tolist()
                equal = {float(value) for value in values if is_number(value)}
                alike = [value for value in unknown if is_number(value) and float(value) in equal]
                if shown := alike or (unknown if known.isna().all() else []):
                    first = f"column {name!r} has the unknown category {shown[0]!r}"
                    warn(f"{first}, not one of {listed(values)}", stacklevel=2)
                codes.append(known.where(known.notna() | text.isna(), len(values)))
        return np.column_stack([c.to_numpy(np.float64, na_value=np.nan) for c in numbers + codes])

    def __sklearn_is_fitted__(self) -> bool:
        return True
