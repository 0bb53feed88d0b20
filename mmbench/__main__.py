"""Entry point of ``python -m mmbench``, equivalent to the command ``mmbench``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    root = str(Path(__file__).resolve().parents[1])
    # the current folder is moved to the end of the search path, so that its files do not replace
    # installed modules with the same names
    if sys.path[0] != root and not sys.flags.safe_path:
        sys.path.append(sys.path.pop(0))
    from mmbench.cli import main

    main()
