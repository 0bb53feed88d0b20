"""JSON files with a seal, a hash of their bytes.

A seal can be recomputed after an edit, so the types of the content are checked, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import ValidationError, from_json

from mmbench.datasets.card import first_fault
from mmbench.errors import UserError

#: Integers of 19 digits in a JSON text, after each digit has become 0 and each mark that can stand
#: before an integer a space.
DIGITS = bytes.maketrans(b"123456789[,:-\n\r\t", b"0" * 9 + b" " * 7)
LONG_INTEGER = b" " + b"0" * 19


class BadRecord(UserError):
    """A file is damaged, was edited, or contains the record of another job or format version."""


def sealed(content: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return a mapping as JSON text with the additional last entry "seal": the hash of the text
    with an empty seal.
    """
    text = json.dumps({**content, "seal": ""}, indent=indent, allow_nan=False).encode()
    end = text.rindex(b'"')
    return text[:end] + _sha256(text).encode() + text[end:]


def unseal(text: bytes, schema: int, validator: Any = None) -> dict[str, Any]:
    """Return the mapping in a sealed JSON text, without the seal.

    Parameters
    ----------
    text : bytes
    schema : int
        The supported value of the mapping's ``schema`` entry.
    validator : SchemaValidator, optional
        Validator that returns the mapping in JSON types.

    Raises
    ------
    BadRecord
        If the text is damaged or was edited, if its ``schema`` entry is not supported, or if an
        entry has a wrong type. For a wrong type, the error message names the entry.
    """
    try:
        content, checked = _loads(text, validator)
    except (ValueError, RecursionError) as error:
        raise BadRecord("not complete JSON") from error
    seal = content.pop("seal", None) if isinstance(content, dict) else None
    if not isinstance(seal, str) or seal not in _seals(text, seal, content):
        raise BadRecord("its content does not match its seal")
    if content.get("schema") != schema:
        raise BadRecord(f"schema {content.get('schema')}, not {schema}")
    if validator and not checked:
        check_types(content, validator)
    return content


def check_types(content: Any, validator: Any) -> None:
    """Raise BadRecord with the first entry of a wrong type in a mapping in JSON types."""
    try:
        # pydantic refuses names of files that are not Unicode
        text = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        validator.validate_json(text, strict=True)
    except ValidationError as error:
        raise BadRecord(first_fault(error)) from None


def _seals(text: bytes, seal: str, content: dict[str, Any]) -> Iterator[str]:
    """Yield the seal of a text, and its seal in the format of earlier versions."""
    head, _, tail = text.rpartition(f'"{seal}"'.encode(errors="replace"))
    yield _sha256(head + b'""' + tail)
    yield _sha256(json.dumps(content, sort_keys=True).encode())


def _loads(text: bytes, validator: Any) -> tuple[Any, bool]:
    """Return the content of a JSON text, and whether its types have been checked.

    pydantic reads it fastest, and checks the types meanwhile. `json` reads integers that may be too
    long, and names of files that are not Unicode.
    """
    # the search for one byte is many times faster than the search for several
    escaped = b"\\" in text and b"\\ud" in text
    if escaped or LONG_INTEGER in text.translate(DIGITS):
        return json.loads(text, parse_int=_int), False
    if validator:
        with suppress(ValidationError):
            return validator.validate_json(text, strict=True), True
    return from_json(text), False


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _int(text: str) -> int:
    """Return an integer of a JSON text; ValueError if it does not fit into a column of a frame."""
    value = int(text)
    if value.bit_length() > 63:
        raise ValueError(f"an integer of {value.bit_length()} bits")
    return value
