"""JSON files with a hash of their content, which is called the seal.

Damaged and edited files do not match their seals. A seal can be recomputed after an edit, so the
types of the content are checked, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from mmbench.errors import UserError


class BadRecord(UserError):
    """A file is damaged, was edited, or contains the record of another job or format version."""


def sealed(content: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return a mapping as JSON text, with a hash of its content as the additional entry "seal"."""
    return json.dumps({**content, "seal": _seal(content)}, indent=indent, allow_nan=False).encode()


def unseal(text: bytes, schema: int) -> dict[str, Any]:
    """Return the mapping in a sealed JSON text, without the seal.

    Parameters
    ----------
    text : bytes
    schema : int
        The supported value of the mapping's ``schema`` entry.

    Raises
    ------
    BadRecord
        If the text is damaged or was edited, or if its ``schema`` entry is not supported.
    """
    try:
        content = json.loads(text, parse_int=_int)
        intact = isinstance(content, dict) and content.pop("seal", None) == _seal(content)
    except ValueError as error:
        raise BadRecord("not complete JSON") from error
    except RecursionError:
        raise BadRecord("nested too deeply") from None
    if not intact:
        raise BadRecord("its content does not match its seal")
    if content.get("schema") != schema:
        raise BadRecord(f"schema {content.get('schema')}, not {schema}")
    return content


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _int(text: str) -> int:
    """Return an integer of a JSON text; ValueError if it does not fit into a column of a frame."""
    value = int(text)
    if value.bit_length() > 63:
        raise ValueError(f"an integer of {value.bit_length()} bits")
    return value
