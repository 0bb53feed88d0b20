"""Classifiers from elsewhere: selected on the same folds, tested on the same rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mmbench.config.plan import plan
from mmbench.config.read import load_configs
from mmbench.errors import Status, UserError
from mmbench.jobs.job import Job
from mmbench.jobs.prepare import prepare
from mmbench.jobs.record import is_done
from mmbench.jobs.train import job_seeds, rehearse
from mmbench.machines import SVM, make_machine
from mmbench.machines.base.voting import resolve_votes, votes
from mmbench.plugins import import_path, imported
from mmbench.running.worker import Context, execute
from mmbench.selection import SelectRef, select
from mmbench.selection.folds import inner_splits
from mmbench.selection.metrics import METRICS

FOREST = "sklearn.ensemble:RandomForestClassifier"


def pipeline():
    """Return a pipeline, as a function of a user's own module does."""
    return make_pipeline(StandardScaler(), GaussianNB())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_votes_are_for_what_the_estimator_predicts(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[50 * (3 - n_classes) :, :2], np.array(["a", "b", "c"])[y[50 * (3 - n_classes) :]]
    plain = RandomForestClassifier(n_estimators=8, random_state=1).fit(X[::2], y[::2])
    machine = make_machine(FOREST, n_estimators=8, random_state=1).fit(X[::2], y[::2])
    decisions = machine.pairwise_decision_function(X).astype(np.float32)
    found = machine.classes_[resolve_votes(votes(decisions, n_classes))]
    np.testing.assert_array_equal(found, plain.predict(X))
    assert [fit.status for fit in machine.fits_] == [Status.UNCERTIFIED]


def test_selection_is_that_of_a_plain_grid_search():
    X, y = load_wine(return_X_y=True)
    grid = {"gaussiannb__var_smoothing": [1e-9, 1.0, 100.0]}
    found = select(make_machine(f"{__name__}:pipeline"), X, y, grid, SelectRef(folds=4), seed=3)
    plain = GridSearchCV(pipeline(), grid, cv=inner_splits(y, 4, None, 1, 3)).fit(X, y)
    scores = [row["score"] for row in found.scores]
    np.testing.assert_allclose(scores, plain.cv_results_["mean_test_score"])
    assert found.params == [plain.best_params_]


def test_a_job_has_a_record_without_a_certificate(job, context):
    """scikit-learn's SVC solves the SVM's problem, so both make the same errors."""
    theirs, _ = execute(replace(job, machine="sklearn.svm:SVC"), context)
    ours, _ = execute(job, context)
    assert is_done(theirs), theirs["reason"]
    assert theirs["status"] == Status.UNCERTIFIED
    assert theirs["fits"]["worst_gap"] is theirs["fits"]["worst_violation"] is None
    for part in ("metrics", "split", "seeds"):
        assert theirs[part] == ours[part]
    assert theirs["selection"]["params"] == ours["selection"]["params"]


def test_a_stated_tolerance_is_kept_in_the_search(job, context):
    grid = {"grid": (("C", (0.01, 1.0)),), "machine": "sklearn.linear_model:LogisticRegression"}
    record, _ = execute(replace(job, params=(("tol", 1e-3),), **grid), context)
    assert is_done(record), record["reason"]
    assert record["parameters"]["tol"] == 1e-3 and record["selection"]["n_points"] == 2


def test_a_classifier_is_imported_and_tried_before_its_times_are_measured(monkeypatch):
    rows, fit = [], Odd.fit
    monkeypatch.setattr(Odd, "fit", lambda self, X, y: rows.append(len(X)) or fit(self, X, y))
    rehearse.__wrapped__(f"{__name__}:Odd", "linear", None)
    assert rows == [24]


@pytest.mark.parametrize(
    ("machine", "kinds"),
    [
        ("sklearn.linear_model:LogisticRegression", {"probabilities"}),
        ("sklearn.naive_bayes:GaussianNB", {"probabilities"}),
        ("sklearn.svm:SVC", {"scores"}),
    ],
)
def test_what_a_classifier_says_of_each_class_is_stored(job, context, machine, kinds):
    plain = replace(job, machine=machine, grid=())
    record, arrays = execute(plain, context)
    assert is_done(record), record["reason"]
    assert kinds == set(arrays) - {"test_index", "predicted", "decisions", "y_test", "classes"}
    for kind in kinds:
        best = arrays["classes"][arrays[kind].argmax(axis=1)]
        np.testing.assert_array_equal(best, arrays["predicted"])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "name",
    [
        "sklearn.linear_model:LogisticRegression",
        "sklearn.linear_model:RidgeClassifier",
        "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
        "sklearn.ensemble:GradientBoostingClassifier",
    ],
)
def test_ranks_are_those_of_scikit_learns_scorer(name, n_classes):
    """Logits of several classes have an arbitrary constant per row, so they do not rank rows."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes, :2], y[y < n_classes]
    X = X + np.random.default_rng(0).normal(size=X.shape)
    machine = make_machine(name).fit(X[::2], y[::2])
    found = METRICS["auc"].compute(y[1::2], machine.class_scores(X[1::2]), machine.classes_)
    if name.endswith("RidgeClassifier") and n_classes > 2:  # one against the rest, no probabilities
        scores = machine.estimator.decision_function(X[1::2])
        areas = [roc_auc_score(y[1::2] == k, scores[:, k]) for k in range(n_classes)]
        assert found == pytest.approx(np.mean(areas))
    else:
        scorer = get_scorer("roc_auc" if n_classes == 2 else "roc_auc_ovr")
        assert found == pytest.approx(scorer(machine.estimator, X[1::2], y[1::2]))


def test_a_machine_from_elsewhere_is_a_machine():
    assert isinstance(make_machine("mmbench.machines.svm:SVM"), SVM)


def test_a_run_does_not_repeat_that_an_estimator_is_about_to_lose_n_jobs(recwarn):
    X, y = load_iris(return_X_y=True)
    make_machine("sklearn.linear_model:LogisticRegression", n_jobs=1).fit(X, y)
    assert not [warning for warning in recwarn if "n_jobs" in str(warning.message)]


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier whose answers have the form that its parameters name."""

    def __init__(self, answer="labels", shape="vector"):
        self.answer, self.shape = answer, shape

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.order_ = np.arange(len(np.unique(y)))[:: -1 if self.shape == "reversed" else 1]
        self.classes_ = self.inner_.classes_[self.order_]
        return self

    def predict(self, X):
        labels = self.inner_.predict(X)
        answers = {
            "labels": labels,
            "codes": np.searchsorted(self.inner_.classes_, labels),
            "text": labels.astype(str),
            "nan": np.where(X[:, 0] > np.median(X[:, 0]), np.nan, labels.astype(float)),
            "float": labels.astype(float),
        }
        return answers[self.answer][:, None] if self.shape == "column" else answers[self.answer]

    def decision_function(self, X):
        values = self.inner_.decision_function(X)
        if values.ndim == 1 and self.shape != "vector":
            values = (
                values[:, None] if self.shape == "column" else np.column_stack([-values, values])
            )
        return values[:, self.order_] if self.shape == "reversed" else values


@pytest.mark.parametrize("shape", ["vector", "column", "matrix", "reversed"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_answers_of_any_form_are_mapped_to_the_labels(n_classes, shape):
    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[y < n_classes], y[y < n_classes] + 5
    plain = LogisticRegression().fit(X, y)
    machine = make_machine(f"{__name__}:Odd", shape=shape, answer="float").fit(X, y)
    np.testing.assert_array_equal(machine.predict(X), plain.predict(X))
    values = plain.decision_function(X)
    expected = np.column_stack([-values, values]) if n_classes == 2 else values
    np.testing.assert_allclose(machine.class_scores(X), expected)
    if n_classes == 2:
        np.testing.assert_allclose(machine.pairwise_decision_function(X)[:, 0], values)


def test_codes_that_are_also_labels_are_no_labels():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    machine = make_machine(f"{__name__}:Odd", answer="codes").fit(X, y + 1)
    machine.estimator.classes_ = np.arange(3)
    text = r"^Odd predicts its own classes \[0, 1, 2\], not the labels$"
    with pytest.raises(ValueError, match=text):
        machine.predict(X[y > 0])  # only the codes 1 and 2, which are labels, too


@pytest.mark.parametrize(("answer", "label"), [("codes", "0"), ("text", r"'\d'"), ("nan", "nan")])
def test_a_prediction_that_is_no_label_fails_by_name(answer, label):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    machine = make_machine(f"{__name__}:Odd", answer=answer).fit(X, y + 5)
    text = f"^Odd predicts {label}, which is no label: 5, 6, 7$"
    for predict in (machine.predict, machine.pairwise_decision_function):
        with pytest.raises(ValueError, match=text):
            predict(X)


class Width(GaussianNB):
    """A classifier whose `kernel` is a number."""

    def __init__(self, kernel=5):
        super().__init__()
        self.kernel = kernel


SVC = "sklearn.svm.SVC"
KERNELS = ["linear", "rbf"]


def planned(folder, entry, **changes):
    content = {
        "name": "kernels",
        "datasets": ["wine"],
        "preprocess": "standard",
        "kernel": KERNELS,
        "protocol": {"test": {"kfold": 2}},
        "machines": {"svm": {}, "mine": entry},
        **changes,
    }
    return [job for job in plan(load_configs([content])[0], folder) if job.column == "mine"]


@pytest.mark.parametrize(
    ("entry", "kernels"),
    [
        ({"estimator": "sklearn.gaussian_process.GaussianProcessClassifier"}, [None]),
        ({"estimator": "sklearn.semi_supervised.LabelSpreading"}, ["rbf"]),
        ({"estimator": Width}, [5]),
        ({"estimator": SVC}, ["rbf"]),
        ({"estimator": SVC, "kernel": KERNELS}, KERNELS),
        ({"estimator": SVC, "kernel": "poly"}, ["poly"]),
        ({"estimator": SVC, "params": {"kernel": "sigmoid"}}, ["sigmoid"]),
        ({"estimator": SVC, "grid": {"kernel": ["poly", "sigmoid"]}}, [None]),
    ],
)
def test_a_kernel_is_that_of_the_entry_or_the_classifiers_own(entry, kernels, tmp_path):
    records = [execute(j, Context(tmp_path))[0] for j in planned(tmp_path, entry)[::2]]
    assert all(map(is_done, records)), records[0]["reason"]
    found = [record["parameters"]["kernel"] for record in records]
    own = dict.fromkeys(("n_jobs", "random_state"))
    names = imported(import_path(records[0]["job"]["machine"]))().get_params().keys() - own
    assert all(record["parameters"].keys() == names for record in records)
    assert found == kernels or (kernels == [None] and len(found) == 1)


def test_degrees_are_those_of_a_stated_poly(tmp_path):
    jobs = planned(tmp_path, {"estimator": SVC, "kernel": "poly"}, kernel="poly", degree=[2, 3])
    assert {dict(job.params)["degree"] for job in jobs} == {2, 3}
    assert len(planned(tmp_path, {"estimator": SVC}, kernel="poly", degree=[2, 3])) == 2


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"estimator": SVC, "use": "svm"}, "is rbf, but the parameters of svm are .* for linear"),
        ({"estimator": SVC, "kernel": "rbf", "params": {"kernel": "rbf"}}, "is also given"),
        ({"estimator": FOREST.replace(":", "."), "kernel": KERNELS}, "has no parameter kernel"),
    ],
)
def test_kernels_that_contradict_each_other_are_refused(entry, words, tmp_path):
    with pytest.raises(UserError, match=words):
        planned(tmp_path, entry)


def test_lists_have_the_type_of_the_default(tmp_path):
    network = "sklearn.neural_network.MLPClassifier"
    sizes = {"hidden_layer_sizes": [[20, 10], [5]]}
    entry = {"estimator": network, "grid": sizes, "params": {"max_iter": 9}}
    [job, _] = planned(tmp_path, entry, select={"folds": 2})
    assert Job.from_dict(job.to_dict()) == job
    record, _ = execute(job, Context(tmp_path))
    assert record["parameters"]["hidden_layer_sizes"] in ([20, 10], [5])
    found = make_machine("sklearn.naive_bayes:GaussianNB", priors=(0.5, 0.5)).estimator
    assert found.priors == [0.5, 0.5]
    own = make_machine(import_path(network), hidden_layer_sizes=(3,)).estimator
    assert own.hidden_layer_sizes == (3,)


WEIGHTS = [{"0": 1, "1": 50}, {"0": 50, "1": 1}, "balanced"]


@pytest.mark.parametrize("machine", [{"machine": "svm"}, {"estimator": SVC}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_weights_by_label_are_searched(machine, n_classes, tmp_path):
    """The labels of iris are 0, 1 and 2, and the keys of YAML texts."""
    X, y = load_iris(return_X_y=True)
    lines = [
        f"{a},{b},{label}" for a, b, label in zip(*X[:, :2].T, y, strict=True) if label < n_classes
    ]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,y", *lines]))
    data = {"datasets": [{"path": tmp_path / "own.csv", "target": "y"}], "kernel": "rbf"}
    entry = {**machine, "grid": {"class_weight": WEIGHTS}}
    [job, _] = planned(tmp_path, entry, **data, select={"folds": 3, "metric": "balanced_accuracy"})
    record, _ = execute(job, Context(tmp_path))
    assert is_done(record), record["reason"]
    part = prepare(job, tmp_path, None)
    folds = inner_splits(part.y_train, 3, None, 1, job_seeds(job)["selection"])
    by_label = [{0: 1, 1: 50, 2: 1}, {0: 50, 1: 1, 2: 1}, "balanced"]
    if n_classes == 2:
        by_label = [w if isinstance(w, str) else {k: w[k] for k in (0, 1)} for w in by_label]
    model = SVM() if "machine" in machine else imported(import_path(SVC))()
    plain = GridSearchCV(model, {"class_weight": by_label}, cv=folds, scoring="balanced_accuracy")
    plain.fit(part.X_train, part.y_train)
    scores = {repr(row["class_weight"]): row["score"] for row in record["selection"]["scores"]}
    assert len(set(scores.values())) > 1
    np.testing.assert_allclose(
        sorted(scores.values()), sorted(plain.cv_results_["mean_test_score"])
    )
