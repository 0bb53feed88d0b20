"""Folders of data files. The folders are in the package if it is installed, and beside the package
in a clone of the repository.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def _folder(inside: str, beside: str) -> Path:
    installed = _PACKAGE / inside
    return installed if installed.is_dir() else _PACKAGE.parent / beside


#: Folder of the configurations of the experiments.
CONFIGS = _folder("configs", "configs")
#: Folder of the reference tables (results of full runs), with one subfolder per experiment.
REFERENCE = _folder("reference", "results/reference")
