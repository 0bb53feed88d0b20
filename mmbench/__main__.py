"""Entry point of ``python -m mmbench``, equivalent to the command ``mmbench``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    root = str(Path(__file__).resolve().parents[1])
    # move the current folder to the end of the search path: a file in the current folder must not
    # replace an installed module with the same name
    if sys.path[0] != root and not sys.flags.safe_path:
        sys.path.append(sys.path.pop(0))
    from mmbench.cli import main

    main()
