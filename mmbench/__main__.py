"""Entry point of ``python -m mmbench``, equivalent to the command ``mmbench``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    root = str(Path(__file__).resolve().parents[1])
    # Python adds the current folder to the search path, whose files would then be imported in place
    # of optional modules; see `mmbench.plugins.FOLDERS`
    if sys.path[0] != root and not sys.flags.safe_path:
        del sys.path[0]
    from mmbench.cli import main

    main()
