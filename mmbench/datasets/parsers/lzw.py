"""Unix ``compress`` (``.Z``), in which the UCI repository keeps Isolet and Waveform.

The standard library has no reader for it. Format: three header bytes (magic, flags), then codes of
9 bits that grow to at most ``flags & 31`` bits; code 256 resets the table when flag 128 is set.
Codes come in groups of eight: when the width changes, the rest of a group is skipped.
"""

from __future__ import annotations

MAGIC = b"\x1f\x9d"
FIRST_WIDTH = 9
RESET = 256


def uncompress(data: bytes) -> bytes:
    """Return the content of a ``.Z`` file.

    Raises
    ------
    ValueError
        If it is no such file or is damaged.
    """
    if not data.startswith(MAGIC) or len(data) < 3:
        raise ValueError("not a .Z file")
    max_width, block_mode = data[2] & 31, bool(data[2] & 128)
    if not FIRST_WIDTH <= max_width <= 16:
        raise ValueError(f"a .Z file with codes of {max_width} bits")
    return _decode(data, max_width, block_mode)


def _decode(data: bytes, max_width: int, block_mode: bool) -> bytes:
    first_free = 257 if block_mode else 256
    literals = [bytes([k]) for k in range(256)] + [b""] * (first_free - 256)
    table, width, previous = list(literals), FIRST_WIDTH, b""
    out: list[bytes] = []
    position = start = 24  # bits; groups are counted from `start`
    end = len(data) * 8
    while position + width <= end:
        code = _bits(data, position, width)
        position += width
        if code == RESET and block_mode:
            position = start = _next_group(position, start, width)
            table, width, previous = list(literals), FIRST_WIDTH, b""
            continue
        entry = _entry(table, code, previous)
        out.append(entry)
        if previous and len(table) < 1 << max_width:
            table.append(previous + entry[:1])
        previous = entry
        # The encoder widens as soon as its next code would not fit; its table is one entry ahead.
        if len(table) >= 1 << width and width < max_width:
            position = start = _next_group(position, start, width)
            width += 1
    return b"".join(out)


def _entry(table: list[bytes], code: int, previous: bytes) -> bytes:
    if code < len(table) and code != RESET:
        return table[code]
    if code == len(table) and previous:
        return previous + previous[:1]
    raise ValueError("a damaged .Z file")


def _bits(data: bytes, position: int, width: int) -> int:
    byte, shift = divmod(position, 8)
    return (int.from_bytes(data[byte : byte + 3], "little") >> shift) & ((1 << width) - 1)


def _next_group(position: int, start: int, width: int) -> int:
    group = 8 * width
    return start + -(-(position - start) // group) * group
