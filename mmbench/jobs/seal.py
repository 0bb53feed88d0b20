"""JSON text that is sealed by a hash of its own content: what was changed or cut is told apart."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


class BadRecord(Exception):
    """A file that is not the intact one that its name promises."""


def dump(content: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return the JSON text of a mapping, sealed."""
    sealed = {**content, "seal": _seal(content)}
    return json.dumps(sealed, indent=indent, allow_nan=False).encode()


def parse(text: bytes, schema: int) -> dict[str, Any]:
    """Return the mapping in a sealed JSON text.

    Parameters
    ----------
    text : bytes
    schema : int
        The value of the mapping's ``schema`` that the caller understands.

    Raises
    ------
    BadRecord
        If the text is damaged, was changed by hand, or is of another schema.
    """
    try:
        content = json.loads(text)
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
