"""Tables 2 and 3 of the MAMC paper with ten splits of each of the 13 sets, as a user runs them.

    python benchmarks/mamc_tables.py --mirror FOLDER [--splits 10] [--jobs 2]

Runs configs/mamc_table2.yaml with fewer splits and prints wall-clock time, its share of the 20
minutes that the run may take on two cores, and CPU seconds by machine as ratios to the MAMC's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import yaml

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "mamc_table2.yaml"
BUDGET = 20 * 60


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    config = yaml.safe_load(CONFIG.read_text())
    config["protocol"]["repeats"] = options.splits
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "few_splits.yaml")
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        command = [sys.executable, "-m", "mmbench", "run", str(path), "--results", folder]
        start = time.perf_counter()
        subprocess.run(
            [*command, "--jobs", str(options.jobs), "--mirror", options.mirror],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        wall = time.perf_counter() - start
        records = [json.loads(p.read_text()) for p in Path(folder).glob("*/records/*.json")]
    cpu: Counter[str] = Counter()
    for record in records:
        cpu[record["job"]["machine"]] += sum(record["cpu_seconds"].values())
    print(
        f"{len(records)} jobs, {wall:.0f} s on {options.jobs} processes: {wall / BUDGET:.2f} of ",
        end="",
    )
    print(f"{BUDGET // 60} minutes")
    for machine, seconds in cpu.items():
        print(f"{machine:9} {seconds:8.1f} s   {seconds / cpu['mamc']:7.1f}")


if __name__ == "__main__":
    main()
