"""What all kinds of source share: their one error, and the time limit of a silent server."""

import os

from mmbench.errors import UserError

TIMEOUT = "MMBENCH_TIMEOUT"
DEFAULT_TIMEOUT = 60.0


class SourceError(Exception):
    """A source did not deliver; the message is one line and names no data set."""


def timeout() -> float:
    """Return the seconds that a server may stay silent: MMBENCH_TIMEOUT, or 60."""
    text = os.environ.get(TIMEOUT, "")
    try:
        seconds = float(text) if text else DEFAULT_TIMEOUT
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UserError(f"{TIMEOUT}={text}: must be a number of seconds above 0")
    return seconds


def one_line(error: BaseException, limit: int = 200) -> str:
    """Return an exception's message as one line of bounded length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 3] + "..."
