"""The command line: commands, options and exit codes."""

import os
import signal
import sys
from contextlib import suppress

EXIT_INTERRUPTED = 130
INTERRUPTED = "interrupted; finished jobs are stored"


def main() -> None:
    """Run the command line; the first Ctrl-C ends the command, and a second Ctrl-C is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt_once)
    # if stdout or stderr remained closed, the next file that is opened would receive all messages
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115

    # the current folder may contain plug-ins, or may have been deleted
    with suppress(OSError):
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
    try:
        from mmbench.cli.app import app  # imported here, since Ctrl-C may interrupt the import

        app()
    except KeyboardInterrupt:
        print(f"mmbench: {INTERRUPTED}", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except (MemoryError, ImportError) as error:
        if isinstance(error, ImportError) and "failed to map" not in str(error):
            raise
        print("mmbench: there is too little memory or address space (ulimit -v)", file=sys.stderr)
        sys.exit(2)


def _interrupt_once(*_: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
