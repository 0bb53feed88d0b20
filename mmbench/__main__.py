"""``python -m mmbench``: the same as the command ``mmbench``."""

from mmbench.cli import main

if __name__ == "__main__":
    main()
