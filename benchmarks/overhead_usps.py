"""Time outside solvers and kernels in a whole USPS run: planning, processes, records, tables.

    python benchmarks/overhead_usps.py --mirror FOLDER

The script runs ``mmbench run configs/usps_rbf.yaml --jobs 1`` and ``mmbench table``, subtracts the
recorded times of selection, training and test, and prints the rest as a share of the whole time.
Two parts of the rest are shown separately, since they run no code of mmbench. The first part is
starting Python and importing libraries, timed by commands that do nothing else. The worker and the
command line import at the same time, so the longer time counts. The second part is loading compiled
code, once per worker.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mmbench.commands.run import WORKER_IMPORTS

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "usps_rbf.yaml"
WORK = ("selection", "training", "test")

#: Imports of the worker and of the command that prints a table.
WORKER = f"import {', '.join(WORKER_IMPORTS)}, mmbench.machines.svm"
TABLE = "import mmbench.cli.app, pydantic, yaml, numpy, pandas"


def seconds(*arguments):
    """Run Python and return its wall-clock seconds; bytecode is stored, as by default."""
    keep = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=keep)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    options = parser.parse_args()
    for command in (WORKER, TABLE):
        seconds("-c", command)  # from now on the files are in memory
    with tempfile.TemporaryDirectory() as folder:
        run = ["-m", "mmbench", "run", str(CONFIG), "--mirror", options.mirror]
        seconds(*run, "--dry-run")
        total = seconds(*run, "--jobs", "1", "--results", folder)
        total += seconds("-m", "mmbench", "table", f"{folder}/{CONFIG.stem}")
        imports = sum(seconds("-c", command) for command in (WORKER, TABLE))
        records = [json.loads(p.read_text()) for p in Path(folder).glob("*/records/*.json")]
    walls = [record["wall_seconds"] for record in records]
    work = sum(wall[stage] for wall in walls for stage in WORK)
    warm_up = sum(wall["warm_up"] for wall in walls)
    rest = total - work - warm_up - imports
    print(f"whole run and table                  {total:6.2f} s")
    for name, value in {
        "selection, training, test": work,
        "loading compiled code": warm_up,
        "starting Python, importing": imports,
        "planning, processes, records, tables": rest,
    }.items():
        print(f"{name:36s} {value:6.2f} s  ({value / total:5.1%})")


if __name__ == "__main__":
    main()
