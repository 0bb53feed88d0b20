"""
Compare machines on a table of your own
=======================================

An experiment needs a CSV file and ten lines of YAML. All machines have the same folds, parameters
are selected on each training part, and every test prediction is stored.
"""

# %%
# The table
# ---------
# Any CSV file with a column of classes. Here it is made from data inside scikit-learn, with a
# missing value and a column of words, as in real tables.

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_wine

folder = Path(tempfile.mkdtemp())
table = load_wine(as_frame=True).frame.iloc[:, [0, 1, 6, 9, 12, 13]]
table["label"] = table.pop("target").map({0: "barolo", 1: "grignolino", 2: "barbera"})
table["cellar"] = ["old" if row % 3 else "new" for row in range(len(table))]
table.loc[5, "alcohol"] = None
table.to_csv(folder / "wines.csv", index=False)
print(table.head())

# %%
# The experiment
# --------------

(folder / "wines.yaml").write_text("""\
name: wines
datasets: [{path: wines.csv, target: label, categorical: auto}]
preprocess: [{impute: median}, one_hot, minmax]
kernel: rbf
protocol: {test: {kfold: 5}, repeats: 2, seed: 0}
select: {folds: 3}
machines:
  svm: {grid: {C: {log2: [-3, 9, 3]}, gamma: [0.1, 1, 10]}}
  rmm: {use: svm, grid: {B: auto}}
  mpm: {kernel: linear, grid: {ridge: [1.0e-8, 0.01]}}
  rf:  {estimator: sklearn.ensemble.RandomForestClassifier, params: {n_estimators: 50}}
""")


def mmbench(*arguments, last=40):
    """Run a command as in a terminal, and print the last lines of its output."""
    print("$ mmbench", *arguments)
    done = subprocess.run(
        [sys.executable, "-m", "mmbench", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    print("\n".join((done.stderr + done.stdout).splitlines()[-last:]))


mmbench("run", "wines.yaml", "--dry-run")

# %%

mmbench("run", "wines.yaml", "--jobs", "1", last=5)

# %%
# The results
# -----------
# Mean accuracies with standard errors; below them, the selected parameters and the certificates.

mmbench("table", "results/wines")

# %%
# The records as a data frame
# ---------------------------
# One row per split, for statistics and pictures of your own.

import matplotlib.pyplot as plt

from mmbench import results

records = results.load(folder / "results")
print(records.groupby("machine").accuracy_pct.agg(["mean", "std", "min"]).round(1))

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for place, (_, rows) in enumerate(records.groupby("machine")):
    shift = [place + 0.04 * (k - 4.5) for k in range(len(rows))]
    axes.plot(rows.accuracy_pct, shift, "o", color="#0072B2", alpha=0.6)
    axes.plot([rows.accuracy_pct.mean()] * 2, [place - 0.3, place + 0.3], color="black")
axes.set_yticks(range(records.machine.nunique()), sorted(records.machine.unique()))
axes.set(xlabel="accuracy of a split (%); line: mean over ten splits")
axes.set_title("Accuracies of four machines on ten splits")
