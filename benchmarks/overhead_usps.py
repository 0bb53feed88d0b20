"""Time outside solvers and kernels in a whole USPS run: planning, processes, records, tables.

    python benchmarks/overhead_usps.py --mirror FOLDER

Runs ``mmbench run configs/usps_rbf.yaml --jobs 1`` and ``mmbench table`` as a user would, subtracts
what the records say of selection, training and test, and prints the rest as a share of the whole.
Loading compiled code (warm-up, once a worker) is shown beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "usps_rbf.yaml"
WORK = ("selection", "training", "test")


def seconds(*command):
    """Run mmbench and return its wall-clock seconds."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "mmbench", *command], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = seconds(
            "run", str(CONFIG), "--jobs", "1", "--results", folder, "--mirror", options.mirror
        )
        table = seconds("table", folder)
        records = [json.loads(p.read_text()) for p in Path(folder).glob("*/records/*.json")]
    walls = [record["wall_seconds"] for record in records]
    work = sum(wall[stage] for wall in walls for stage in WORK)
    warm_up = sum(wall["warm_up"] for wall in walls)
    total = run + table
    print(f"whole run and table        {total:7.2f} s")
    print(f"selection, training, test  {work:7.2f} s")
    print(f"warm-up                    {warm_up:7.2f} s  ({warm_up / total:.1%})")
    print(f"everything else            {total - work - warm_up:7.2f} s  ", end="")
    print(f"({(total - work - warm_up) / total:.1%})")


if __name__ == "__main__":
    main()
