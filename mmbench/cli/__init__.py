"""The command line of mmbench: commands, options and exit codes."""

import gc
import os
import signal
import sys
from pathlib import Path

EXIT_INTERRUPTED = 130
INTERRUPTED = "interrupted; finished jobs are stored"


def main() -> None:
    """Run the command line.

    The first Ctrl-C or SIGTERM ends the command. Any later Ctrl-C or SIGTERM is ignored, since it
    would interrupt the cleanup.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt_once)
    # A batch system ends a job by SIGTERM. Without a handler of SIGTERM, processes that were
    # started by workers would continue to run.
    signal.signal(signal.SIGTERM, _interrupt_once)
    # if stdout or stderr is closed, the next file that is opened would get its file descriptor, and
    # messages would be written to this file
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115

    # The processes of Dask find mmbench in this folder, also if mmbench is installed in editable
    # mode. The current folder is no part of the import path: see `mmbench.plugins.FOLDERS`.
    if (root := str(Path(__file__).parents[2])) not in sys.path:
        sys.path.append(root)
    # Commands keep most objects that they make. With the default threshold, garbage collection
    # takes a tenth of the CPU time of a table of many records.
    gc.set_threshold(100_000)
    try:
        from mmbench.cli.app import app  # Ctrl-C may interrupt this import

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
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
