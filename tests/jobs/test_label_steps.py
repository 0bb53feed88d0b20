"""Steps that use labels never see the labels of validation rows or of test rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from mmbench.config.plan import plan
from mmbench.config.read import config_of
from mmbench.datasets.preprocess import make_preprocess, use_labels
from mmbench.jobs.prepare import prepare
from mmbench.jobs.record import is_done
from mmbench.jobs.train import job_seeds
from mmbench.running.worker import Context, execute
from mmbench.selection.folds import inner_splits

PERCENTILE = {"sklearn.feature_selection.SelectPercentile": {"percentile": 1}}
LINEAR = {"kernel": "linear", "grid": {"C": [0.001, 1.0]}}
LOGISTIC = {"estimator": "sklearn.linear_model.LogisticRegression", "grid": {"C": [0.001, 1.0]}}


def jobs_of(folder, **changes):
    """Return the jobs of an experiment on 3,000 columns of noise, in two classes of 60 rows."""
    X = np.random.default_rng(0).normal(size=(120, 3000))
    np.savez(folder / "noise.npz", X=X, y=np.repeat(["a", "b"], 60))
    content = {
        "name": "noise",
        "datasets": [{"path": "noise.npz"}],
        "preprocess": PERCENTILE,
        "protocol": {"test": {"kfold": 3}},
        "select": {"folds": 4},
        **changes,
    }
    return plan(config_of(content, folder / "noise.yaml"), folder)


@pytest.mark.parametrize(
    ("machines", "select"),
    [
        ({"svm": LINEAR}, {"folds": 4}),
        ({"svm": LINEAR}, {"folds": 4, "scope": "pair"}),
        ({"svm": LINEAR}, {"split": 0.3, "repeats": 3}),
        ({"fsvm_opt": LINEAR}, {"folds": 4}),
        ({"mine": LOGISTIC}, {"folds": 4}),
    ],
)
def test_a_percentile_of_noise_predicts_half_of_the_rows(machines, select, tmp_path):
    records = [
        execute(j, Context(tmp_path))[0]
        for j in jobs_of(tmp_path, machines=machines, select=select)
    ]
    assert all(map(is_done, records)), records[0]["reason"]
    inner = [row["score"] for record in records for row in record["selection"]["scores"]]
    assert 0.4 < np.mean(inner) < 0.6  # with labels of the validation rows, all are above 0.8
    assert 40 < np.mean([record["metrics"]["accuracy_pct"] for record in records]) < 60


def test_scores_are_those_of_a_grid_search_over_the_pipeline(tmp_path):
    job, *_ = jobs_of(tmp_path, machines={"mine": LOGISTIC})
    record, _ = execute(job, Context(tmp_path))
    data = prepare(job, tmp_path, None)
    folds = inner_splits(data.y_train, 4, None, 1, job_seeds(job)["selection"])
    model = Pipeline([("first", data.label_steps.unfitted), ("last", LogisticRegression())])
    plain = GridSearchCV(model, {"last__C": [0.001, 1.0]}, cv=folds)
    plain.fit(data.label_steps.X_pool, data.y_train)
    found = [row["score"] for row in record["selection"]["scores"]]
    np.testing.assert_allclose(found, plain.cv_results_["mean_test_score"])


def test_calibrated_probabilities_of_noise_are_near_one_half(tmp_path):
    machines = {"svm": {**LINEAR, "calibrate": "sigmoid"}}
    for job in jobs_of(tmp_path, machines=machines):
        record, arrays = execute(job, Context(tmp_path))
        assert is_done(record), record["reason"]
        assert np.abs(arrays["probabilities"] - 0.5).mean() < 0.2


@pytest.mark.parametrize(
    ("step", "used"),
    [
        ("minmax", False),
        ("sklearn.preprocessing.PowerTransformer", False),
        ("sklearn.decomposition.FastICA", False),
        ("sklearn.preprocessing.TargetEncoder", True),
        ("sklearn.discriminant_analysis.LinearDiscriminantAnalysis", True),
        ("sklearn.feature_selection.SelectKBest", True),
        (f"{__name__}.Own", True),
    ],
)
def test_steps_that_may_use_labels_are_known(step, used, tmp_path):
    job, *_ = jobs_of(tmp_path, machines={"svm": {}}, preprocess=step)
    assert use_labels(make_preprocess(job.dataset.preprocess)) == used


class Own:
    """A transformer of the user's own, which states nothing about labels."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X
