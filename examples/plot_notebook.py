"""
Experiments in a notebook
=========================

The commands are functions: an experiment is a mapping, its results are tables and data frames.
This page can be downloaded as a notebook, in which tables and machines are shown as here, and the
progress of a run is a bar.
"""

# %%
# Run an experiment
# -----------------
# A mapping with the keys of a configuration takes the place of a YAML file. Errors are exceptions,
# with the key and the nearest valid name.

import tempfile

import mmbench
from mmbench.errors import UserError

results = tempfile.mkdtemp()
experiment = {
    "name": "flowers",
    "datasets": ["iris", "wine"],
    "preprocess": "standard",
    "kernel": "linear",
    "protocol": {"test": {"kfold": 5}},
    "machines": {
        "svm": {"grid": {"C": [0.1, 1, 10]}},
        "lssvm": {"grid": {"C": [0.1, 1, 10]}},
        "lda": {},
    },
}
(finished,) = mmbench.run(experiment, results)
print(finished.done, "jobs in", finished.folder.name)

# %%
try:
    mmbench.run({**experiment, "kernel": "linaer"}, results)
except UserError as error:
    print(error)

# %%
# The table
# ---------
# The returned string is Markdown; a notebook shows the table. ``fmt="latex"`` and ``output=``
# write it for an article.

mmbench.table(finished.folder)

# %%
# The records
# -----------
# A data frame with one row per split, for other statistics and figures.

records = mmbench.load(finished.folder)
records.groupby(["dataset", "machine"]).accuracy_pct.agg(["mean", "std"]).round(1)

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
columns = records.groupby(["dataset", "machine"]).accuracy_pct
axes.boxplot([rows for _, rows in columns], tick_labels=["\n".join(name) for name, _ in columns])
_ = axes.set(
    ylabel="accuracy of a split (%)", title="Accuracies of three machines on two data sets"
)

# %%
# A table of your own
# -------------------
# ``easy`` takes a data frame with missing values and texts. Here two of its machines run; without
# ``set``, ten run.

from sklearn.datasets import load_breast_cancer

frame = load_breast_cancer(as_frame=True).frame.iloc[:200, [0, 1, 2, 3, -1]]
frame["target"] = frame["target"].map({0: "malignant", 1: "benign"})
frame.iloc[3, 1] = None
comparison = mmbench.easy(
    frame,
    target="target",
    results=results,
    set=["machines={svm: {grid: {C: auto, gamma: auto}}, lda: {kernel: linear}}"],
)
comparison

# %%
# The machine for new rows
# ------------------------
# ``refit`` trains the best machine on all rows, with the selected parameters.

model = mmbench.refit(comparison.folder, kernel="rbf")
print(model.predict(frame.head()), model.provenance_["expected_accuracy_pct"])
model
