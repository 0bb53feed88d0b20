"""Read a table from a file."""

from __future__ import annotations

import base64
import codecs
import csv
import io
import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import converted, extra
from mmbench.reader.advice import (
    check_names,
    check_width,
    column_name,
    not_names,
    setting,
    wrong_fields,
)
from mmbench.reader.file_text import UNPACKERS, TooLarge, read_bytes, read_npz, read_svmlight
from mmbench.reader.keys import SVMLIGHT, Column, FileOptions, Nominal, inner_path
from mmbench.reader.text_tables import (
    BLANKS,
    MOST_CELLS,
    QUOTED_OR_NOT,
    field_counts,
    parse_rows,
    read_arff,
    without_bytes,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from scipy.sparse import csr_array

NO_NAMES: Mapping[str, Any] = MappingProxyType({})
#: Pattern of the beginning of an svmlight file: a label, and at least three features.
SVMLIGHT_LINE = rb"[+-]?[0-9.]+([ \t]+(qid|[0-9]+):[^\s:,]+){3,}\s"
#: Pattern of the beginning of an ARFF file. KEEL gives such files the suffix ``.dat``.
ARFF = re.compile(r"\s*(%[^\n]*\n\s*)*@relation\b", re.I)
#: Names of file formats that cannot be read, with advice, by patterns of their first bytes, which
#: do not match CSV headers such as ``[ID],x`` or ``MATLAB_score,x``. A file is accepted if the
#: advice contains the suffix of its name, such as ``.svm``.
OTHER_FORMATS = {
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save it as CSV",
    b"PK\x03\x04": "an archive or an Excel workbook; unpack it, or save it as CSV",
    b"%PDF-": "a PDF document",
    b"\x89HDF": "an HDF5 file; save it as Parquet or npz",
    rb"MATLAB [0-9.]+ MAT-file": "a Matlab file; save it as CSV or npz",
    b"\x93NUMPY": "a single NumPy array; save X and y as npz",
    b"ARROW1\0\0": "a Feather file; save it as Parquet",
    b"SQLite format 3\0": "an SQLite database; export a table as CSV",
    b"<(!DOCTYPE|html)": "an HTML page",
    rb'\{\s*"|\[\s*["{\[]': "JSON; save it as CSV",
    rb"\(\xb5/\xfd": "a Zstandard file; unpack it",
    rb"version https://git-lfs": "a pointer of Git LFS; fetch the file by 'git lfs pull'",
    SVMLIGHT_LINE: "svmlight text; let its name end in .svm or .svmlight or .libsvm",
}
#: Words that denote a missing value in a CSV file by default. The words "None" and "null", which
#: pandas also reads as missing values, are excluded, since they may be class labels.
MISSING_WORDS = ("", "?", "NA", "N/A", "NaN", "nan")
#: Byte order marks and their encodings. UTF-32-LE comes before UTF-16-LE, since the mark of
#: UTF-16-LE is a prefix of the mark of UTF-32-LE.
BYTE_ORDERS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
#: Options that have an effect only on CSV files.
OF_CSV = frozenset({"header", "separator", "skip_lines"})
#: Name that `pandas.read_csv` gives to a first column without a name. `DataFrame.to_csv` writes the
#: row numbers, the index of the data frame, as such a column, and R writes the names of the rows.
ROW_NUMBERS = "Unnamed: 0"
#: Number of bytes at the beginning of a file that are used to recognise the file format.
START = 4096
#: Number of rows of a Parquet file that are read at a time.
BATCH_ROWS = 4096
#: Maximum number of columns of a sparse table.
MOST_SPARSE_COLUMNS = 2**26


class DenseTable(NamedTuple):
    """A table as a data frame, with the name of its target and properties of its columns."""

    #: All columns of the table, as numbers or text.
    frame: pd.DataFrame
    #: Name of the column of class labels.
    target: str
    #: Categories, in order, of each column that the file declares as categorical.
    nominal: Nominal = NO_NAMES
    #: Text columns of a Parquet file, which are categorical if at least one value is not a number.
    text: tuple[str, ...] = ()
    #: Type of content, such as "lists" or "dates", of each column that cannot be a feature.
    unusable: Mapping[str, str] = NO_NAMES
    #: Columns that OpenML or the file excludes from the features.
    ignored: tuple[str, ...] = ()
    #: Options that have no effect for the file format. Empty for a CSV file; `OF_CSV` for an ARFF
    #: or Parquet file. Options such as `decimal` have an effect on ARFF and Parquet files, since
    #: numbers may be stored as text.
    idle: frozenset[str] = OF_CSV | {"decimal", "thousands", "units"}
    #: Name of the column of class labels that the file itself states, or None.
    own_target: str | None = None


class SparseTable(NamedTuple):
    """Features and class labels of a file that is too large for a dense array."""

    #: Features, shape (n_samples, n_features).
    X: csr_array
    #: Labels, shape (n_samples,).
    y: NDArray
    #: Columns that OpenML or the file excludes from the features.
    ignored: tuple[str, ...] = ()
    #: Options that have no effect for the file format.
    idle: frozenset[str] = OF_CSV | {"decimal", "thousands", "units"}


def read_file(path: Path, options: FileOptions, target: Column | None) -> DenseTable | SparseTable:
    """Read a file as a table.

    The format of a binary or ARFF file is recognised from its beginning, and the format of another
    text file from the suffix of the path. `target` is the column of class labels, or None if the
    file format defines the labels.

    Raises
    ------
    ValueError
        If the file cannot be read as a table. The message is one line.
    """
    start, suffix = first_bytes(path), inner_path(path).suffix.lower()
    most = options.max_megabytes * 2**20
    try:
        if start.startswith(b"PAR1"):
            return _parquet(path, options, target, most)
        if start.startswith(b"PK") and suffix == ".npz":
            return _npz(path, most)
        if not start.startswith(tuple(UNPACKERS)):
            # check the format first: of a large file in another format, `read_bytes` would only say
            # that it is too large
            _refuse_other(start, suffix, options)
        content = read_bytes(path, most)
    except TooLarge as error:
        megabytes = -(-error.needed // 2**20)
        limit = f"and at most {options.max_megabytes} MB are read"
        raise ValueError(f"{error}, {limit}; {setting('max_megabytes', megabytes)}") from error
    if content.startswith(b"PAR1"):
        return _parquet(io.BytesIO(content), options, target, most)
    _refuse_other(content[:START], suffix, options)
    if suffix in SVMLIGHT:
        return _svmlight(content.removeprefix(codecs.BOM_UTF8), options.max_columns, most)
    text = _decoded(content, options.encoding)
    if suffix != ".arff" and not ARFF.match(text):
        frame = read_csv(text, options, target)
        ignored = (ROW_NUMBERS,) if _are_row_names(frame.get(ROW_NUMBERS)) else ()
        return DenseTable(frame, _label(target, [*frame]), ignored=ignored, idle=frozenset())
    given = options.missing or (), options.max_columns, options.row_weights
    frame, nominal, own_target, no_role = read_arff(text, *given)
    label = _label(own_target if target is None else target, list(frame.columns))
    table = DenseTable(frame, label, nominal, ignored=no_role, own_target=own_target)
    return table._replace(idle=OF_CSV)


def _label(target: Column | None, names: Sequence[str]) -> str:
    """Return the name of the column of class labels."""
    if target is None:
        raise ValueError("target is missing: set it to the column of the classes")
    return column_name(target, names, "target column")


def read_csv(text: str, options: FileOptions, target: Column | None) -> pd.DataFrame:
    """Convert CSV text to a data frame; blank lines are skipped.

    If there is no header, the names of the columns are ``"1"``, ``"2"``, ... The default separator
    is the most frequent of comma, semicolon and tab in the first record, or blanks if the record
    contains none of them. If two separators are equally frequent, the rows with at least as many
    fields as the first record are counted for both separators, and the separator with the larger
    count is chosen. If the decimal mark is a comma, the comma is the separator only if the header
    contains no other separator. Columns that `options` exclude by number may have an empty or
    repeated name.
    """
    separator, decimal, no_name = options.separator, options.decimal, False
    csv.field_size_limit(min(options.max_megabytes * 2**20, sys.maxsize))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = "\n".join(text.split("\n")[options.skip_lines :]).lstrip("\n")
    if stated := re.match(r'"?sep=(.)"?\n', text):  # Excel may write a first line such as sep=,
        separator, text = separator or stated[1], text[stated.end() :]
    first, body, found = _first_record(text, separator, decimal)
    if len(first) == 1 and options.header and decimal == "," and not separator:
        comma = _first_record(text, ",", decimal)
        first, body, found = comma if len(comma[0]) > 1 else (first, body, found)
    check_width(len(first), options.max_columns)
    names = [" ".join(name.split()) for name in first]
    # the record after the first one, which may be preceded by blank lines
    row, *_ = _first_record(re.sub(r"^\s*\n", "", body), " " if found == BLANKS else found, decimal)
    n, n_fields = len(names), len(row or names)
    fault = "" if n_fields == n else wrong_fields(n, 2 - options.header, n_fields)
    if found == BLANKS and row[1:] and all(cell.endswith((",", ";")) for cell in row[:-1]):
        fault = f"the first line has blanks between fields, and the next line has {row[0][-1]!r}"
        n_fields = n  # the blanks do not separate fields
    if options.header:
        with converted(fault, ValueError, to=ValueError):
            if n_fields == n + 1 and (options.index == 1 or not row[-1]):
                names = ["", *names] if options.index == 1 else [*names, ""]
            elif fault:  # R writes no name of the column of row names
                first_names = f"if the first field names the row, {setting('index', 1)}; "
                raise ValueError(first_names * (n_fields == n + 1) + not_names(options))
            left_out = (k for k in (*options.drop, options.index) if isinstance(k, int))
            for k in {k % (len(names) + 1) for k in left_out} - {0}:
                if not names[k - 1] or names.count(names[k - 1]) > 1:
                    names[k - 1] = f"column {k}"
            if no_name := not names[0] and options.index is None and ROW_NUMBERS not in names:
                names[0] = ROW_NUMBERS
            check_names(names, options)
    elif fault:
        raise ValueError(f"{fault}; {not_names(options)}")
    else:
        names, body = [str(k) for k in range(1, len(first) + 1)], text
    if len(names) == 1 and isinstance(target, str) and target not in names:
        marks = re.findall(r"[^\w\s\"'\x80-\U0010ffff]", names[0])[:1]
        hints = [f"; if {mark!r} separates fields, {setting('separator', mark)}" for mark in marks]
        hints = hints or [f"; {not_names(options)}"] * bool(body.strip())
        raise ValueError(f"its only column is {names[0]!r}, not {target!r}{''.join(hints)}")
    words = MISSING_WORDS if options.missing is None else options.missing
    # words for missing values are kept in text columns, so that error messages can quote the words
    texts = {n: (*own, *words) for n, own in text_columns(options, target, names).items()}
    frame = parse_rows(body, names, texts, words, sep=found, decimal=decimal)
    if no_name and not _are_row_names(frame[ROW_NUMBERS]):
        check_names(["", *names[1:]], options)
    return frame


def _are_row_names(column: pd.Series | None) -> bool:
    return column is not None and column.dtype.kind != "f" and column.is_unique


def _first_record(text: str, separator: str | None, decimal: str) -> tuple[list[str], str, str]:
    """Return the fields of the first record of CSV text, the remaining text, and the separator.

    Raises ValueError if two separators fit the text equally well.
    """
    candidates = [separator] if separator else list(",;\t".replace(decimal, ""))
    records = []
    for candidate in candidates:
        reader = csv.reader(io.StringIO(text), delimiter=candidate, skipinitialspace=True)
        records.append((next(reader, []), reader.line_num, candidate))
    most = max(len(fields) for fields, *_ in records)
    widest = [record for record in records if len(record[0]) == most]
    if most > 1 and len(widest) > 1:
        fitting = [sum(n >= most for n in field_counts(text, r[2])) for r in widest]
        widest = [r for r, n in zip(widest, fitting, strict=True) if n == max(fitting)]
        if len(widest) > 1:
            option = setting("separator", widest[-1][2])
            raise ValueError(f"the fields have two possible separators; for one of them, {option}")
    fields, n_lines, found = widest[0]
    if separator == " " or (not separator and len(fields) == 1 and " " in fields[0].strip()):
        line, _, body = text.partition("\n")
        return [a.replace('""', '"') or b for a, b in re.findall(QUOTED_OR_NOT, line)], body, BLANKS
    return fields, "".join(text.split("\n", n_lines)[n_lines:]), found


def text_columns(options: FileOptions, target: Column | None, names: Sequence[str]) -> Nominal:
    """Return the columns that are read as text even if all values are numbers.

    The keys are the names of the columns. The values are the categories that `options` state, or ()
    if none are stated.
    """
    stated = () if options.categorical == "auto" else options.categorical
    n, given = len(names), {target: (), options.groups: (), **dict(stated)}
    found = {
        names[c - (c > 0)] if isinstance(c, int) and 0 < abs(c) <= n else c: values
        for c, values in given.items()
    }
    return {name: found[name] for name in names if name in found}


def _decoded(content: bytes, encoding: str) -> str:
    """Return the content of a file as text. A byte order mark overrides `encoding`."""
    mark = next((mark for mark in BYTE_ORDERS if content.startswith(mark)), b"")
    encoding = BYTE_ORDERS.get(mark, encoding)
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        other = {"utf-8": "cp1252", "cp1252": "latin-1"}.get(encoding)
        option = f"; for another encoding, {setting('encoding', other)}" * bool(other and not mark)
        raise ValueError(f"not {encoding} text (byte {len(mark) + error.start}){option}") from error
    if not text.strip():
        raise ValueError("the file is empty")
    if "\0" in text:
        raise ValueError(f"not {encoding} text: contains NUL characters; set another encoding")
    return text


def first_bytes(path: Path) -> bytes:
    """Return the first START bytes of a file; raise ValueError if the file cannot be read."""
    if path.exists() and not path.is_file():
        raise ValueError("is a folder" if path.is_dir() else "not a regular file")
    with converted("", OSError, to=ValueError), path.open("rb") as file:
        return file.read(START)


def _refuse_other(start: bytes, suffix: str, options: FileOptions) -> None:
    """Raise ValueError if the first bytes of a file show an unsupported format or binary data."""
    if start.startswith(tuple(BYTE_ORDERS)):
        return
    for magic, name in OTHER_FORMATS.items():
        if re.match(magic, start.lstrip()) and suffix not in name.split():
            raise ValueError(f"is {name}")
    if b"\0" in start and codecs.lookup(options.encoding).name == "utf-8":
        hint = "for UTF-16 text, write encoding: utf-16-le or utf-16-be"
        raise ValueError(f"contains binary data of an unknown format; {hint}")


def _parquet(source: Any, options: FileOptions, target: Column | None, most: int) -> DenseTable:
    with extra("parquet", "a Parquet file"):
        import pyarrow
        from pyarrow import parquet

    with converted("not a readable Parquet file", OSError, pyarrow.ArrowException, to=ValueError):
        file = parquet.ParquetFile(source)
        n_rows, schema = file.metadata.num_rows, file.schema_arrow
        check_width(len(schema.names), options.max_columns)
        size = 8 * n_rows * len(schema.names)
        if size > most:
            raise TooLarge(f"{n_rows} rows x {len(schema.names)} columns", size)
        batches, size = [], 0
        # the size of text and lists is known only after decoding
        for batch in file.iter_batches(BATCH_ROWS):
            batches.append(batch)
            size += batch.nbytes
            if size > most:
                raise TooLarge(f"values of more than {most} bytes", 4 * most)
        table = pyarrow.Table.from_batches(batches, schema).unify_dictionaries()
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    check_names([*(name or " " for name in schema.names), "a column"])
    # in the Arrow schema of the file, columns of categories are dictionary-encoded
    stored = (file.metadata.metadata or {}).get(b"ARROW:schema")
    fields = pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(stored))) if stored else ()
    declared = {field.name for field in fields if pyarrow.types.is_dictionary(field.type)}
    read = _from_arrow(table, _label(target, schema.names), options, declared)
    return read._replace(ignored=tuple(name for name in index if isinstance(name, str)))


def _from_arrow(data: pa.Table, label: str, options: FileOptions, declared: set[str]) -> DenseTable:
    """Return the columns of a Parquet file as a table in which text columns are categorical."""
    import pandas as pd
    from pyarrow import types

    kinds = {"structs": types.is_struct, "maps": types.is_map, "lists": types.is_nested}
    kinds |= {"dates": types.is_date, "times": types.is_temporal}
    words = text_columns(options, label, data.schema.names)
    columns: dict[str, pd.Series] = {}
    nominal: dict[str, tuple[str, ...]] = {}
    text: list[str] = []
    unusable: dict[str, str] = {}
    for field, column in zip(data.schema, data.columns, strict=True):
        name, kind = field.name, field.type
        # pyarrow recognises the types of pandas for periods and intervals only after an import of
        # pandas; without the import, the metadata of the field contain the name of the type
        own = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
        if own := getattr(kind, "extension_name", own):
            unusable[name] = f"values of the type {own}"
            column = column.cast(kind := getattr(kind, "storage_type", kind))
        elif word := next((word for word, belongs in kinds.items() if belongs(kind)), None):
            unusable[name] = word
        if types.is_nested(kind):
            columns[name] = pd.Series([None] * len(column), dtype=object)
            continue
        if types.is_decimal(kind):
            column = column.cast("string" if name in words else "float64")
        if types.is_boolean(kind) and column.null_count and name not in {*words, *declared}:
            column = column.cast("float64")  # from booleans, pandas would create Python objects
        series = column.cast("float64" if types.is_null(kind) else column.type).to_pandas()
        if "binary" in str(kind):
            try:
                series = without_bytes(series, options.encoding, "strict")
            except UnicodeDecodeError:
                unusable[name] = f"bytes that are not {options.encoding} text"
        if isinstance(series.dtype, pd.CategoricalDtype):
            nominal[name] = tuple(map(as_text, series.cat.categories))
            series = series.astype(object)
        elif name in declared:
            nominal[name] = ()
            series = series.map(as_text, na_action="ignore").astype(object)
        elif pd.api.types.is_string_dtype(series.dtype) and name not in unusable:
            text.append(name)
        columns[name] = series
    return DenseTable(pd.DataFrame(columns), label, nominal, tuple(text), unusable, idle=OF_CSV)


def as_text(value: object) -> str:
    """Return a category as text. An integer that is stored as a float becomes "2", not "2.0"."""
    value = float(value) if isinstance(value, Decimal) else value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _npz(path: Path, most: int) -> DenseTable:
    problem = f"{path.name}: not a readable .npz file"
    with converted(problem, zipfile.BadZipFile, to=ValueError), zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
        names = {name.removesuffix(".npy") for name in archive.namelist()}
    if size > most:
        raise TooLarge(f"{path.name}: arrays of {size} bytes", size)
    if not {"X", "y"} <= names:
        raise ValueError(f"must contain arrays X and y, has {', '.join(sorted(names)) or 'none'}")
    arrays = read_npz(path, ["X", "y"])
    return of_arrays(arrays["X"], arrays["y"])


def _svmlight(content: bytes, max_columns: int, most: int) -> DenseTable | SparseTable:
    """Return svmlight data as a dense table, or as a sparse table if a limit would be exceeded.

    The limits of dense tables are `max_columns`, with the label, and `most` bytes.
    """
    from scipy.sparse import csr_array, csr_matrix

    X, y, queries = read_svmlight(content)
    ignored = ("qid",) if len(queries) else ()
    if X.shape[1] > MOST_SPARSE_COLUMNS:
        where = f"data row {np.searchsorted(X.indptr, X.indices.argmax(), 'right')}"
        raise ValueError(f"{where}: {X.shape[1]} columns are too many; number them 1, 2, ...")
    cells = X.shape[0] * X.shape[1]
    if cells > min(MOST_CELLS, most // 8) or X.shape[1] >= max_columns:
        # `csr_matrix` converts indices to 32 bits if possible; LinearSVC does not accept 64-bit
        # indices
        return SparseTable(csr_array(csr_matrix((X.data, X.indices, X.indptr))), y, ignored)
    table = of_arrays(X.toarray(), y)
    frame = table.frame.assign(**dict.fromkeys(ignored, queries))
    return table._replace(frame=frame, ignored=ignored)


def of_arrays(X: NDArray, y: NDArray) -> DenseTable:
    """Return features and labels as a table with columns ``"1"``, ``"2"``, ... and ``target``."""
    import pandas as pd

    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if X.ndim != 2 or y.shape != (len(X),):
        shapes = f"have shapes {X.shape} and {y.shape}"
        raise ValueError(f"X and y {shapes}, not (n_samples, n_features) and (n_samples,)")
    X, y = (a.astype(a.dtype.newbyteorder("="), copy=False) for a in (X, y))
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8")
    if X.dtype.kind not in "buif":
        raise ValueError(f"X must contain numbers, not {X.dtype}")
    frame = pd.DataFrame(X, columns=[str(k + 1) for k in range(X.shape[1])])
    return DenseTable(frame.assign(target=y), "target")
