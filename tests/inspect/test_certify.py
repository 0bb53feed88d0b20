"""`mmbench.certify`: certificates of other packages' support vector machines."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from itertools import combinations

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import (
    dump_svmlight_file,
    load_breast_cancer,
    load_iris,
    load_wine,
    make_blobs,
)
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder, scale
from sklearn.svm import SVC, LinearSVC, NuSVC, OneClassSVM
from sklearn.utils.class_weight import compute_class_weight
from typer.testing import CliRunner

import mmbench
from mmbench.cli.app import app
from mmbench.commands.certify import certify_file
from mmbench.errors import UserError


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def test_a_wide_gap_and_a_right_decision_are_told_apart(cancer):
    """With a steep loss, libsvm's tolerance leaves a wide primal gap and a right dual value."""
    (row,) = mmbench.certify(SVC(C=1e6).fit(*cancer), *cancer).itertuples()
    assert row.gap > 0.9
    assert_allclose(row.dual, row.optimum, rtol=1e-5)
    assert row.labels_changed == 0
    assert 1e-5 < row.decision_change < 1e-2


def test_the_values_are_those_of_the_definition(cancer):
    X, y = cancer
    model = SVC(C=2.0, kernel="poly", coef0=0.5, gamma=0.1, class_weight={1: 3}).fit(X, y)
    (row,) = mmbench.certify(model, X, y).itertuples()
    signs = np.where(y == 1, 1.0, -1.0)
    K = (0.1 * X @ X.T + 0.5) ** 3
    u = np.zeros(len(y))
    u[model.support_] = model.dual_coef_[0]
    losses = np.maximum(0, 1 - signs * model.decision_function(X))
    assert_allclose(row.objective, 0.5 * u @ K @ u + np.where(y == 1, 6.0, 2.0) @ losses)
    assert_allclose(row.dual, np.abs(u).sum() - 0.5 * u @ K @ u)
    assert row.dual <= row.optimum * (1 + 1e-9) <= row.objective * (1 + 1e-6)


MODELS = {
    "SVC": SVC(),
    "SVC linear": SVC(kernel="linear"),
    "SVC balanced": SVC(class_weight="balanced", C=10),
    "NuSVC": NuSVC(nu=0.2),
    "LinearSVC": LinearSVC(),
    "LinearSVC hinge": LinearSVC(loss="hinge", C=0.1, tol=1e-6, max_iter=10**6),
    "LinearSVC scaled intercept": LinearSVC(intercept_scaling=5.0, tol=1e-6),
    "LinearSVC without intercept": LinearSVC(fit_intercept=False),
    "SGD": SGDClassifier(alpha=0.01, max_iter=20000, tol=None, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), SVC(C=3)),
    "SVM": mmbench.SVM(),
    "SVM linear": mmbench.SVM(kernel="linear", class_weight="balanced"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_near_the_optimum_have_a_small_gap(name, wine):
    X, y = wine
    result = mmbench.certify(MODELS[name].fit(X, y), X, y)
    assert len(result) == 3
    assert (result.status == "optimal").all()
    assert (result.gap < (0.05 if name == "SGD" else 1e-2)).all()
    assert (result.bound <= result.objective * (1 + 1e-9)).all()
    if name != "SGD":
        assert (result.labels_changed == 0).all()
    else:  # the last steps are still long
        assert (result.labels_changed <= 2).all()


def test_a_moved_hyperplane_has_a_gap(wine):
    X, y = wine
    model = SVC(kernel="linear").fit(X, y)
    before = mmbench.certify(model, X, y)
    model.intercept_ += 1.0
    after = mmbench.certify(model, X, y)
    assert (after.gap > 0.1).all()
    assert (after.decision_change > 0.9).all()
    assert_allclose(after.dual, before.dual)


def test_rows_on_the_other_side_are_counted(cancer):
    X, y = cancer
    model = SVC(kernel="linear").fit(X, y)
    f = model.decision_function(X)
    model.intercept_ += 2.0
    (row,) = mmbench.certify(model, X, y).itertuples()
    assert row.labels_changed == np.count_nonzero((f <= 0) & (f + 2.0 > 0)) > 20


def test_dual_variables_that_do_not_sum_to_0_violate_a_constraint(cancer):
    X, y = cancer
    model = SVC(kernel="linear").fit(X, y)
    model.dual_coef_[0, np.abs(model.dual_coef_[0]).argmax()] *= 0.5
    with pytest.warns(UserWarning, match=r"sum to 0.5, but after a training to 0"):
        (row,) = mmbench.certify(model, X, y).itertuples()
    assert_allclose(row.violation, abs(model.dual_coef_.sum()))
    assert row.violation > 0.1
    model.dual_coef_[0] *= 1e300
    with pytest.warns(UserWarning, match="objective of 0 / 1 is .* gap is not finite"):
        mmbench.certify(model, X, y)


def test_the_dual_value_of_a_model_that_violates_a_constraint_is_no_bound():
    """With half the penalty, the largest dual variables are too large."""
    X, noise = np.random.default_rng(0).normal(size=(2, 60, 2))
    y = X[:, 0] + noise[:, 0] > 0
    model = NuSVC(nu=0.5, kernel="linear").fit(X, y)
    (row,) = mmbench.certify(model, X, y, C=0.5 * np.abs(model.dual_coef_).max()).itertuples()
    assert row.violation > 0 and row.dual > row.optimum
    assert_allclose(row.gap, (row.objective - row.bound) / row.objective)


class Disagreeing(mmbench.RMM):
    """An RMM whose reference solver finds half of the objective."""

    def train(self, problem, warm=None):
        model = super().train(problem, warm)
        fit, factor = model.fit, 0.5 if self.solver == "reference" else 1.0
        fit = replace(fit, objective=factor * fit.objective, bound=factor * fit.bound)
        return replace(model, fit=fit)


def test_the_optimum_of_other_machines_is_that_of_their_reference(wine):
    result = mmbench.certify(mmbench.RMM().fit(*wine), *wine)
    assert_allclose(result.objective, result.optimum, rtol=1e-3)
    other = mmbench.certify(Disagreeing().fit(*wine), *wine)
    assert_allclose(other.optimum, 0.5 * other.objective, rtol=1e-3)


def test_sparse_rows_have_the_values_of_dense_rows(wine):
    X, y = wine
    X = np.where(np.abs(X) < 0.5, 0, X)
    for model in (LinearSVC(), SVC()):
        fitted = model.fit(X, y)
        dense, sparse = (mmbench.certify(fitted, rows, y) for rows in (X, csr_array(X)))
        assert_allclose(dense.objective, sparse.objective)
        assert_allclose(dense.optimum, sparse.optimum, rtol=1e-5)


def test_weights_of_rows_are_repeated_rows(wine):
    X, y = wine
    weights = np.where(np.arange(len(y)) % 2 == 0, 1, 3)
    repeated = np.repeat(np.arange(len(y)), weights)
    one = mmbench.certify(SVC().fit(X, y, weights), X, y, sample_weight=weights)
    other = mmbench.certify(
        SVC(gamma=1 / 13).fit(X[repeated], y[repeated]), *(X[repeated], y[repeated])
    )
    assert_allclose(one.optimum, other.optimum, rtol=1e-5)


def test_other_data_than_the_training_data_are_refused(wine):
    X, y = wine
    model = SVC().fit(X, y)
    with pytest.raises(UserError, match="training rows"):
        mmbench.certify(model, X[::-1], y[::-1])
    with pytest.raises(UserError, match="labels that the model does not know: 7"):
        mmbench.certify(model, X, np.where(y == 2, 7, y))
    with pytest.raises(UserError, match="signs of dual_coef_"):
        mmbench.certify(model, X, (y + 1) % 3)


def libsvm_file(model: SVC, path, digits: str, first: int = 1) -> None:
    """Write an SVC as libsvm writes it: signs of the first class, columns by the other classes."""
    binary = len(model.classes_) == 2
    sign = -1 if binary else 1
    pairs = len(list(combinations(model.classes_, 2)))
    lines = [
        "svm_type c_svc",
        "kernel_type rbf",
        f"gamma {model._gamma}",
        f"nr_class {len(model.classes_)}",
        f"total_sv {len(model.support_)}",
        "rho " + " ".join(repr(float(v)) for v in (-sign * model.intercept_)[:pairs]),
        "label " + " ".join(map(str, model.classes_)),
        "nr_sv " + " ".join(map(str, model.n_support_)),
        "SV",
    ]
    for coef, row in zip(model.dual_coef_.T, model.support_vectors_, strict=True):
        values = [repr(float(sign * c)) for c in coef]
        values += [f"{j + first}:{v:{digits}}" for j, v in enumerate(row) if v]
        lines.append(" ".join(values))
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", ["cancer", "wine"])
@pytest.mark.parametrize(("digits", "first"), [(".8g", 1), (".17g", 1), (".17g", 0)])
def test_a_file_of_libsvm_is_its_model(name, digits, first, request, tmp_path):
    X, y = request.getfixturevalue(name)
    model = SVC(C=2.0).fit(X, y)
    libsvm_file(model, tmp_path / "m.model", digits, first)
    there = mmbench.certify(model, X, y)
    back = mmbench.certify(tmp_path / "m.model", X, y)
    assert_allclose(back.objective, there.objective)
    assert (back.n_support == there.n_support).all()
    dump_svmlight_file(X, y, str(tmp_path / "train.svm"), zero_based=not first)
    call = ["certify", str(tmp_path / "m.model"), str(tmp_path / "train.svm"), "--C", "2"]
    answer = CliRunner().invoke(app, [*call, "--output", str(tmp_path / "c.csv")])
    assert answer.exit_code == 0, answer.output
    assert "objective" in answer.output
    assert "objective" in (tmp_path / "c.csv").read_text()


def test_large_coefficients_and_warnings_are_short_lines(tmp_path):
    (tmp_path / "train.svm").write_text("1 1:1\n-1 1:-1\n")
    head = (
        "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\n"
    )
    (tmp_path / "m.model").write_text(head + "nr_sv 1 1\nSV\n1e300 1:1\n-1e300 1:-1\n")
    call = ["certify", str(tmp_path / "m.model"), str(tmp_path / "train.svm"), "--C", "10"]
    answer = CliRunner().invoke(app, call)
    assert re.search(r"^violation +1e\+300$", answer.stdout, re.M)
    assert answer.stderr.startswith("warning: the objective of 1.0 / -1.0 is ")
    assert max(map(len, answer.output.splitlines())) < 150


@pytest.mark.parametrize(
    "model, kind, y",
    [
        (LinearSVC(C=0.5), "L2R_L2LOSS_SVC_DUAL", load_wine().target),
        (LogisticRegression(C=0.5, solver="liblinear"), "L2R_LR", load_wine().target > 0),
    ],
    ids=["SVM", "logistic"],
)
def test_a_file_of_liblinear_is_its_model(model, kind, y, wine, tmp_path):
    X, y = wine[0], y.astype(int)
    model = clone(model).fit(X, y)
    table = np.column_stack([model.coef_, model.intercept_]).T
    table = -table if len(model.classes_) == 2 else table  # positive for the first of two labels
    labels = " ".join(map(str, model.classes_))
    head = (
        f"solver_type {kind}\nnr_class {len(model.classes_)}\nlabel {labels}\n"
        f"nr_feature {X.shape[1]}\nbias 1\nw\n"
    )
    rows = "\n".join(" ".join(map(repr, map(float, row))) for row in table)
    (tmp_path / "m.model").write_text(head + rows + "\n")
    back = mmbench.certify(tmp_path / "m.model", X, y, C=0.5)
    assert_allclose(back.objective, mmbench.certify(model, X, y).objective)
    with pytest.raises(UserError, match=r"--C 1\.0"):
        mmbench.certify(tmp_path / "m.model", X, y)


def test_a_pickle_is_read_only_if_trusted(wine, tmp_path):
    X, y = wine
    joblib.dump(SVC().fit(X, y), tmp_path / "m.joblib")
    dump_svmlight_file(X, y, str(tmp_path / "train.svm"), zero_based=False)
    call = ["certify", str(tmp_path / "m.joblib"), str(tmp_path / "train.svm")]
    answer = CliRunner().invoke(app, call)
    assert answer.exit_code == 2
    assert "--trusted" in answer.output
    assert CliRunner().invoke(app, [*call, "--trusted"]).exit_code == 0
    (tmp_path / "m.joblib").write_bytes(b"nothing")
    assert CliRunner().invoke(app, [*call, "--trusted"]).exit_code == 2
    (tmp_path / "other.model").write_text("no model")
    answer = CliRunner().invoke(app, ["certify", str(tmp_path / "other.model"), call[2]])
    assert (answer.exit_code, "there is no line 'svm_type'" in answer.output) == (2, True)
    for name in ("none.model", "none.joblib"):  # named before the data are read
        answer = CliRunner().invoke(app, ["certify", str(tmp_path / name), "none.csv"])
        assert (answer.exit_code, f"{name}: no such file" in answer.output) == (2, True)


@pytest.fixture(scope="module")
def weighted():
    """Four classes of different sizes with string labels, and weights of the rows."""
    X, y = make_blobs([50, 20, 30, 15], n_features=3, cluster_std=4.0, random_state=1)
    names = np.array(["zeta", "alpha", "mu", "beta"])[y]
    return scale(X), names, np.random.default_rng(0).uniform(0.2, 3.0, len(y))


UNEVEN = {"zeta": 5.0, "mu": 0.2}
EXACT = {"tol": 1e-8, "max_iter": 10**6}
SLOW = {"alpha": 0.05, "average": True, "max_iter": 5000, "tol": None, "random_state": 0}


@pytest.mark.parametrize(
    "model",
    [
        SVC(class_weight=UNEVEN),
        SVC(class_weight="balanced"),
        SVC(kernel=linear_kernel),
        NuSVC(nu=0.2, tol=1e-6),
        NuSVC(nu=0.2, tol=1e-6, class_weight=UNEVEN),
        LinearSVC(class_weight=UNEVEN, **EXACT),
        LinearSVC(class_weight="balanced", **EXACT),
        LinearSVC(class_weight=UNEVEN, loss="hinge", C=0.1, **EXACT),
        SGDClassifier(class_weight=UNEVEN, **SLOW),
        SGDClassifier(class_weight="balanced", **SLOW),
        mmbench.SVM(class_weight="balanced"),
        GridSearchCV(SVC(), {"C": [1, 10]}, cv=2),
    ],
    ids=lambda model: re.sub(r"<function (\w+) at \w+>", r"\1", repr(model)),
)
@pytest.mark.parametrize("zeros", [False, True])
def test_weights_of_classes_and_rows_are_those_of_the_training(model, zeros, weighted):
    X, y, weights = weighted
    weights = np.where(np.arange(len(y)) % 3 == 0, 0.0, weights) if zeros else weights
    result = mmbench.certify(model.fit(X, y, sample_weight=weights), X, y, sample_weight=weights)
    assert (result.gap < 2e-3).all()
    assert not (result.violation > 1e-8).any()
    assert (result.status == "optimal").all()


@pytest.mark.parametrize(
    "model, words",
    [
        (LogisticRegression(), "the multinomial objective of LogisticRegression is not known"),
        (LogisticRegression(C=np.inf), "C=inf"),
        (Ridge(positive=True), "minimises another objective"),
        (SGDClassifier(loss="modified_huber"), "minimises another objective"),
        (LinearSVC(multi_class="crammer_singer"), "crammer_singer"),
        (SGDClassifier(penalty="l1"), "minimises another objective"),
        (SGDClassifier(learning_rate="pa1", eta0=1.0), "minimises another objective"),
        (StandardScaler(), "objective of StandardScaler is not known"),
        (SVC(kernel="sigmoid"), "not positive semidefinite"),
        (SVC(C=np.inf, max_iter=100), "C=inf"),
        (SGDClassifier(alpha=0, learning_rate="constant", eta0=0.1), "alpha=0"),
        (RidgeClassifier(alpha=0), "alpha=0"),
        (OneClassSVM(), "objective of OneClassSVM"),
        (CalibratedClassifierCV(SVC(), cv=2), "objective of CalibratedClassifierCV"),
        (SGDClassifier(early_stopping=True), "early_stopping"),
        (mmbench.SVM(C=np.inf, kernel="linear"), "C=inf"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")
def test_problems_without_a_certificate_are_refused(model, words, wine):
    try:
        model.fit(*wine)
    except ValueError:
        pytest.skip("scikit-learn has passive-aggressive steps since version 1.8")
    with pytest.raises(UserError, match=words):
        mmbench.certify(model, *wine)


@pytest.mark.parametrize("model", [SVC(), LinearSVC(), mmbench.RMM(), mmbench.SVM()], ids=repr)
def test_faulty_data_are_one_line(model, wine):
    X, y = wine
    fitted = model.fit(X, y)
    missing = np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)
    for rows, labels, words in [
        (X[:, :2], y, "columns|support vectors|objective of"),
        (missing, y, "NaN"),
        (X[:, 0], y, "2D"),
        (X, np.zeros_like(y), "no row of the model's classes 1, 2"),
        (X, y.astype(str), "does not know: '0'"),
        (X, np.where(y == 1, None, y), "does not know: None"),
        (X[:9], y, "9 rows"),
    ]:
        with pytest.raises(UserError, match=words) as caught:
            mmbench.certify(fitted, rows, labels)
        assert "\n" not in str(caught.value)
    for options, words in [
        ({"C": 7.0}, "stores C=1"),
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"sample_weight": -np.ones(len(y))}, "sample_weight"),
    ]:
        with pytest.raises(UserError, match=words):
            mmbench.certify(fitted, X, y, **options)
    with pytest.raises(UserError, match="not fitted"):
        mmbench.certify(clone(model), X, y)


def test_machines_of_mmbench_are_certified_on_their_training_data_only(wine):
    X, y = wine
    for machine in (mmbench.RMM(kernel="linear"), mmbench.SVM(kernel="linear"), mmbench.RMM()):
        machine.fit(X, y)
        with pytest.raises(UserError, match="objective of 0 / 1 was"):
            mmbench.certify(machine, X[::-1], y)
    pairs = mmbench.SVM().fit_pairs(X, y, [{"C": C} for C in (1.0, 0.1, 0.01)])
    with pytest.raises(UserError, match="equal parameters for all pairs"):
        mmbench.certify(pairs, X, y)


@pytest.mark.parametrize(
    "machine",  # the objectives of KLDA and MAMC are negative
    [mmbench.RMM(), mmbench.LSSVM(), mmbench.M4(kernel="linear"), mmbench.KLDA(), mmbench.MAMC()],
)
def test_changed_coefficients_of_a_machine_are_refused(machine, wine):
    X, y = wine
    machine.fit(X, y)
    assert mmbench.certify(machine, X, y).decision_change.max() < 0.1
    machine.intercept_ = machine.intercept_ + 10
    with pytest.raises(UserError, match="intercept were changed, or X and y differ"):
        mmbench.certify(machine, X, y)


def test_a_penalised_intercept_of_another_package_is_penalised(wine):
    X, y = wine
    X, y = X[y < 2], y[y < 2]
    theirs = LinearSVC(loss="hinge", C=0.1, tol=1e-8, max_iter=100_000).fit(X, y)
    names = ("classes_", "coef_", "intercept_", "C", "loss", "penalty")
    ours = type("LinearSVC", (), {name: getattr(theirs, name) for name in names})()
    free = mmbench.certify(ours, X, y)
    ours.penalized_intercept = True
    expected, found = mmbench.certify(theirs, X, y), mmbench.certify(ours, X, y)
    assert found.objective[0] == pytest.approx(expected.objective[0])
    assert found.optimum[0] == pytest.approx(expected.optimum[0])
    assert free.optimum[0] < found.optimum[0]


@pytest.mark.parametrize(
    "old, new",
    [
        ("nr_sv ", "nr_sv 99999999999999999999999 "),
        ("nr_sv ", "nr_sv 999999999999999 "),
        ("rho ", "rho 1 "),
        ("rho .*", "rho nan nan nan"),
        ("gamma .*", "gamma inf"),
        ("rbf", "precomputed"),
        ("rbf", "other"),
        (" 2:", " 0:"),
        (" 2:", " 77:"),
        ("label .*", "label 0 0 1"),
        (r"(?s)SV.*", "SV"),
        ("c_svc", "epsilon_svr"),
    ],
)
def test_damaged_files_of_libsvm_are_one_line(old, new, wine, tmp_path):
    X, y = wine
    libsvm_file(SVC().fit(X, y), tmp_path / "m.model", ".17g")
    intact = (tmp_path / "m.model").read_text()
    assert len(mmbench.certify(tmp_path / "m.model", X, y)) == 3
    damaged = re.sub(old, new, intact)
    assert damaged != intact
    (tmp_path / "m.model").write_text(damaged)
    with pytest.raises(UserError) as caught:
        mmbench.certify(tmp_path / "m.model", X, y)
    assert "\n" not in str(caught.value)


def test_blank_lines_and_probabilities_in_a_file_are_skipped(wine, tmp_path):
    X, y = wine
    model = SVC().fit(X, y)
    libsvm_file(model, tmp_path / "m.model", ".17g")
    text = (tmp_path / "m.model").read_text().replace("nr_sv", "probA 1 1 1\n\nprobB 1 1 1\nnr_sv")
    (tmp_path / "m.model").write_text(text)
    back = mmbench.certify(tmp_path / "m.model", X, y)
    assert_allclose(back.objective, mmbench.certify(model, X, y).objective)


@pytest.fixture
def table(wine, tmp_path):
    """A table with a column of categories and a column of dates, in a file."""
    X, y = wine
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(
        colour=np.where(X[:, 3] > 0, "red", "blue"), day="2024-01-31", label=y
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    return frame


def test_the_advice_about_a_table_is_an_option_of_the_command(table, tmp_path):
    columns = ["a", "b", "c", "colour"]
    encoder = ColumnTransformer([("words", OneHotEncoder(), ["colour"])], remainder="passthrough")
    rows, y = table[columns], table["label"]
    model = make_pipeline(encoder, SVC()).fit(rows, y)
    joblib.dump(model, tmp_path / "m.joblib")
    call = [str(tmp_path / "m.joblib"), str(tmp_path / "t.csv"), "--target", "label", "--trusted"]
    refused = CliRunner().invoke(app, ["certify", *call])
    assert refused.exit_code == 2
    (key,) = re.findall(r"--set '?([^')]+)", refused.output)[:1]
    call += ["--output", str(tmp_path / "c.csv"), "--set", key]
    answer = CliRunner().invoke(app, ["certify", *call])
    assert answer.exit_code == 0, answer.output
    found = pd.read_csv(tmp_path / "c.csv")
    assert_allclose(found.objective, mmbench.certify(model, rows, y).objective, rtol=1e-5)
    joblib.dump(SVC().fit(encoder.fit_transform(rows), y), tmp_path / "m.joblib")
    bare = CliRunner().invoke(app, ["certify", *call])
    assert (bare.exit_code, "'colour' contains categories" in bare.output) == (2, True)
    assert "--set" not in bare.output


def test_a_pipeline_gets_the_columns_of_a_table_of_numbers(table, tmp_path):
    table.drop(columns=["colour", "day"]).to_csv(tmp_path / "t.csv", index=False)
    rows, y = table[["a", "b", "c"]], table["label"]
    scaler = ColumnTransformer([("scaled", StandardScaler(), ["a", "c"])])
    model = make_pipeline(scaler, SVC()).fit(rows, y)
    joblib.dump(model, tmp_path / "m.joblib")
    found = certify_file(tmp_path / "m.joblib", tmp_path / "t.csv", "label", None, True)
    assert_allclose(found.objective, mmbench.certify(model, rows, y).objective, rtol=1e-6)


@pytest.mark.parametrize(
    ("header", "columns"),
    [("a, b, c,label", ["a", " b", " c"]), ("p,q,r,label", "abc"), ("a,b,c,label", "cab")],
    ids=["blanks", "renamed", "other order"],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_model_of_a_data_frame_gets_the_columns_by_name_or_by_position(
    table, tmp_path, header, columns
):
    frame, y = table[["a", "b", "c"]], table["label"]
    text = frame.assign(label=y).to_csv(index=False, header=False)
    (tmp_path / "t.csv").write_text(f"{header}\n{text}")
    named = frame[list(columns)] if columns == "cab" else frame.set_axis(list(columns), axis=1)
    model = make_pipeline(StandardScaler(), SVC()).fit(named, y)
    joblib.dump(model, tmp_path / "m.joblib")
    found = certify_file(tmp_path / "m.joblib", tmp_path / "t.csv", "label", None, True)
    assert_allclose(found.objective, mmbench.certify(model, named, y).objective, rtol=1e-6)


def test_a_file_of_labels_true_and_false_has_the_labels_of_the_model(table, tmp_path):
    table = table.drop(columns=["colour", "day"]).assign(label=table["label"] == 1)
    table.to_csv(tmp_path / "t.csv", index=False)
    model = SVC().fit(table[["a", "b", "c"]], table["label"])
    joblib.dump(model, tmp_path / "m.joblib")
    found = certify_file(tmp_path / "m.joblib", tmp_path / "t.csv", "label", None, True)
    assert list(found.pair) == ["False / True"]


@pytest.mark.parametrize(
    "model", [SVC(), LinearSVC(), mmbench.SVM(), mmbench.RMM()], ids=lambda m: type(m).__name__
)
@pytest.mark.filterwarnings("ignore")
def test_a_class_whose_rows_have_weight_0_is_refused_or_left_out(model, wine):
    X, y = wine
    weights = np.where(y == 2, 0.0, 1.0)
    fitted = model.fit(X, y, sample_weight=weights)
    if hasattr(fitted, "fits_"):  # trained without the class
        result = mmbench.certify(fitted, X, y, sample_weight=weights)
        assert list(result.pair) == ["0 / 1"]
        return
    with pytest.raises(UserError, match="no row of the model's classes 2 with a positive weight"):
        mmbench.certify(fitted, X, y, sample_weight=weights)


@pytest.mark.parametrize("model", [SVC(), LinearSVC(), SGDClassifier()])
def test_an_unknown_label_of_weight_0_is_refused(model, wine):
    X, y = wine
    model.fit(X[y < 2], y[y < 2])
    with pytest.raises(UserError, match="labels that the model does not know: 2; give the rows"):
        mmbench.certify(model, X, y, sample_weight=np.where(y == 2, 0.0, 1.0))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_optimum_is_found_if_a_class_has_the_weight_0(loss, wine):
    X, y = wine
    model = LinearSVC(class_weight={0: 0, 1: 1}, loss=loss)
    result = mmbench.certify(model.fit(X, y), X, y)
    assert (result.optimum <= result.objective * (1 + 1e-6)).all()
    assert (result.status == "optimal").all()


def test_a_bias_of_0_in_a_file_of_liblinear_is_no_intercept(wine, tmp_path):
    X, y = wine
    model = LinearSVC(fit_intercept=False).fit(X, y)
    rows = [" ".join(map(repr, map(float, row))) for row in [*model.coef_.T, np.zeros(3)]]
    for bias, table in (("-1", rows[:-1]), ("0", rows)):
        head = f"solver_type L2R_L2LOSS_SVC\nnr_class 3\nlabel 0 1 2\nnr_feature 13\nbias {bias}"
        (tmp_path / "m.model").write_text("\n".join([head, "w", *table]) + "\n")
        back = mmbench.certify(tmp_path / "m.model", X, y, C=1.0)
        assert_allclose(back.objective, mmbench.certify(model, X, y).objective)


def test_class_weights_of_a_file_of_libsvm_are_noticed(tmp_path):
    X, y = make_blobs(90, n_features=2, cluster_std=4.0, random_state=0)
    model = SVC(C=2.0, class_weight={2: 5.0}, tol=1e-6).fit(X, y)
    libsvm_file(model, tmp_path / "m.model", ".17g")
    with pytest.warns(UserWarning, match="2 and 10, as with class weights"):
        mmbench.certify(tmp_path / "m.model", X, y)
    weights = np.where(y == 2, 5.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = mmbench.certify(tmp_path / "m.model", X, y, sample_weight=weights)
        libsvm_file(SVC(C=2.0).fit(X, y), tmp_path / "even.model", ".17g")
        mmbench.certify(tmp_path / "even.model", X, y)
    assert_allclose(back.objective, mmbench.certify(model, X, y).objective, rtol=1e-6)


def test_a_nu_that_is_too_small_is_named():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    with pytest.raises(UserError, match="no certificate of 0 / 1: nu is too small"):
        mmbench.certify(NuSVC(nu=0.1).fit(X, y), X, y)
    X, y = (rows[:100] for rows in load_iris(return_X_y=True))
    model = NuSVC(nu=0.3).fit(X, y)
    with pytest.raises(UserError, match="y differs from the training; give the rows and labels"):
        mmbench.certify(model, X, 1 - y)


class Resampler(BaseEstimator):
    """Stands for a sampler of imbalanced-learn, whose `transform` does not add the new rows."""

    def fit(self, X, y):
        return self

    def fit_resample(self, X, y):
        return np.vstack([X, X]), np.append(y, y)

    def transform(self, X):
        return X


@pytest.mark.parametrize("step", [TargetEncoder(), Resampler()], ids=repr)
def test_a_pipeline_that_trains_on_other_rows_than_it_transforms_is_refused(step, wine):
    X, y = wine
    model = make_pipeline(step, LinearSVC(max_iter=10)).fit(np.round(X), y > 0)
    with pytest.raises(UserError, match=rf"{type(step).__name__}\.transform does not give"):
        mmbench.certify(model, np.round(X), y > 0)


@pytest.mark.parametrize("words", [True, False])
def test_a_pipeline_with_principal_components_is_certified(words, wine):
    """PCA.fit_transform and PCA.transform differ by rounding errors."""
    X, y, first = np.round(wine[0]), wine[1], OneHotEncoder(sparse_output=False)
    if not words:  # rounding errors of single precision
        X, first = np.random.default_rng(0).normal(size=(178, 30)).astype(np.float32), "passthrough"
    model = make_pipeline(first, PCA(), SVC()).fit(X, y)
    assert mmbench.certify(model, X, y).gap.max() < 1e-2


def test_class_weights_are_computed_if_the_model_lacks_them(wine):
    """Older versions of cuML's SVC have `class_weight`, and no `class_weight_`."""
    X, y = wine
    model = SVC(class_weight={1: 5.0}).fit(X, y > 0)
    expected = mmbench.certify(model, X, y > 0)
    del model.class_weight_
    assert_allclose(mmbench.certify(model, X, y > 0).objective, expected.objective)


def test_the_columns_of_a_data_frame_have_the_order_of_the_training(wine):
    frame, y = pd.DataFrame(wine[0][:, :2], columns=["a", "b"]), wine[1] > 0
    model = LinearSVC().fit(frame, y)
    assert mmbench.certify(model, frame, y).gap[0] < 1e-3
    with pytest.raises(UserError, match="in this order: a, b"):
        mmbench.certify(model, frame[["b", "a"]], y)


def test_a_model_without_the_attributes_of_a_classifier_is_refused(wine):
    model = SVC().fit(*wine)
    del model.classes_
    with pytest.raises(UserError, match="no attribute classes_; save it as a file of libsvm"):
        mmbench.certify(model, *wine)


def test_a_grid_search_within_a_pipeline_is_unwrapped(wine):
    search = GridSearchCV(SVC(), {"C": [1, 10]}).fit(*wine)
    nested = make_pipeline(StandardScaler(), GridSearchCV(SVC(), {"C": [1, 10]})).fit(*wine)
    assert_allclose(
        mmbench.certify(nested, *wine).objective, mmbench.certify(search, *wine).objective
    )


def test_a_penalty_beside_the_alpha_of_a_model_is_refused(wine):
    X, y = wine
    model = SGDClassifier(alpha=0.01, random_state=0).fit(X, y)
    with pytest.raises(UserError, match="C=777: the model stores"):
        mmbench.certify(model, X, y, C=777)


def test_the_penalty_of_an_alpha_may_be_given(wine):
    """The reciprocal of 1 / 49 * 49 is not exactly 1."""
    X, y = wine[0][40:89], wine[1][40:89] > 0
    model = SGDClassifier(alpha=1 / 49, random_state=0).fit(X, y)
    stored = mmbench.certify(model, X, y)
    assert_allclose(mmbench.certify(model, X, y, C=1.0).objective, stored.objective)
    with pytest.raises(UserError, match="C=1e-12: the model stores C=1e-11"):
        mmbench.certify(SVC(C=1e-11).fit(X, y), X, y, C=1e-12)


@pytest.mark.parametrize("searched", [False, True])
def test_small_columns_beside_a_large_one_are_those_of_the_training(wine, searched):
    X, y = wine[0][:, :3] * [1e6, 1, 1], wine[1] > 0
    model = SVC(gamma=1e-12)
    model = (GridSearchCV(model, {"C": [1.0]}) if searched else model).fit(X, y)
    assert len(mmbench.certify(model, X, y)) == 1
    with pytest.raises(UserError, match="not the support vectors of the model"):
        mmbench.certify(model, X[:, [0, 2, 1]], y)


def test_a_model_whose_positive_penalties_belong_to_one_class_has_the_optimum_0(wine):
    X, y = wine
    model = SGDClassifier(class_weight={0: 0}, random_state=0).fit(X, y > 0)
    (row,) = mmbench.certify(model, X, y > 0).itertuples()
    assert (row.optimum, row.bound, row.status) == (0, 0, "trivial")


def test_a_kernel_function_may_return_sparse_values(wine):
    X, y = csr_array(wine[0]), wine[1]
    model = SVC(kernel=lambda A, B: csr_array(A @ B.T)).fit(X, y)
    expected = mmbench.certify(SVC(kernel="linear").fit(X, y), X, y)
    assert_allclose(mmbench.certify(model, X, y).objective, expected.objective, rtol=1e-3)


def test_a_file_is_certified_with_rows_of_weight_0(wine, tmp_path):
    X, y = wine
    weights = np.where(np.arange(len(y)) < 3, 0.0, 1.0)
    model = SVC().fit(X, y, sample_weight=weights)
    libsvm_file(model, tmp_path / "m.model", ".17g")
    found = mmbench.certify(tmp_path / "m.model", X, y, sample_weight=weights)
    assert_allclose(found.objective, mmbench.certify(model, X[3:], y[3:]).objective)


def test_faulty_weights_of_a_file_and_rows_for_a_kernel_matrix_are_one_line(wine, tmp_path):
    X, y = wine
    head = "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 3\nlabel 0 1 2\nnr_feature 2\nbias -1\nw\n"
    (tmp_path / "m.model").write_text(head + "1 2\n3 4\n")
    with pytest.raises(UserError, match="2 weights per feature for 3 classes"):
        mmbench.certify(tmp_path / "m.model", X[:, :2], y, C=1)
    with pytest.raises(UserError, match="square matrix"):
        mmbench.certify(mmbench.KLDA(kernel="precomputed").fit(X @ X.T, y), X, y)


def test_remarks_about_the_table_are_shown(table, tmp_path):
    rows, y = table[["a", "b", "c"]], table["label"].map({0: "u", 1: "v", 2: "w"})
    joblib.dump(LinearSVC().fit(rows.to_numpy(), y), tmp_path / "m.joblib")
    rows.assign(label=y).to_csv(tmp_path / "t.csv", index=False, header=False)
    with pytest.warns(UserWarning, match=r"t\.csv: the first line, taken as column names"):
        certify_file(tmp_path / "m.joblib", tmp_path / "t.csv", "-1", None, True)


def test_svmlight_data_that_stay_sparse_are_certified(tmp_path):
    X = np.random.default_rng(0).normal(size=(600, 300))
    X[np.abs(X) < 2] = 0
    y = np.where(X.sum(axis=1) > 0, 1, -1)
    model = LinearSVC(C=0.1).fit(csr_array(X), y)
    joblib.dump(model, tmp_path / "m.joblib")
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"), zero_based=False)
    files = tmp_path / "m.joblib", tmp_path / "t.svm"
    found = certify_file(*files, None, None, True, ["datasets[0].max_megabytes=1"])
    assert_allclose(found.objective, mmbench.certify(model, X, y).objective, rtol=1e-6)


def test_a_certificate_that_cannot_be_written_is_printed(wine, tmp_path):
    X, y = wine
    joblib.dump(SVC().fit(X, y), tmp_path / "m.joblib.gz")
    dump_svmlight_file(X, y, str(tmp_path / "train.svm"), zero_based=False)
    call = ["certify", str(tmp_path / "m.joblib.gz"), str(tmp_path / "train.svm"), "--trusted"]
    answer = CliRunner().invoke(app, [*call, "--output", str(tmp_path / "no" / "c.csv")])
    assert answer.exit_code == 2
    assert "objective" in answer.stdout
    assert "No such file or directory" in answer.output


@pytest.mark.parametrize("model", [SVC(), NuSVC(nu=0.2), SVC(kernel="precomputed")], ids=repr)
def test_more_rows_than_in_training_are_refused(model, wine):
    X, y = wine[0], wine[1] > 0
    X = X @ X.T if model.kernel == "precomputed" else X
    model.fit(X[:150, :150], y[:150])
    with pytest.raises(UserError, match="X has 178 rows, but the training had 150; give the rows"):
        mmbench.certify(model, X, y)


def test_rows_without_slack_belong_to_the_training_data_of_a_linear_svm(wine):
    """Without these rows, and on scaled rows, the objective of the model remains the same."""
    X, y = wine[0], wine[1] > 0
    svm = mmbench.SVM(kernel="linear").fit(X, y)
    margins = np.where(y, 1, -1) * svm.decision_function(X)
    kept = np.flatnonzero((margins < 1 - 1e-4) | (margins > 1.3))
    for rows, labels in ((X[kept], y[kept]), (X[margins > 1], y[margins > 1])):
        with pytest.raises(UserError, match=r"of False / True was .* in training and is .* here"):
            mmbench.certify(svm, rows, labels)
    hard = mmbench.SVM(kernel="linear", C=1e6).fit(X, y)
    with pytest.raises(UserError, match=r"the optimum of False / True was .* in training"):
        mmbench.certify(hard, 2 * X, y)


def test_the_optimum_of_a_steep_smooth_loss_is_found_without_a_warning(cancer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearSVC(C=1e6, max_iter=10).fit(*cancer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (row,) = mmbench.certify(model, *cancer).itertuples()
    assert (row.status, row.gap > 0.9) == ("optimal", True)
    assert_allclose(row.bound, row.optimum, rtol=1e-9)


def convex_optimum(X, y, penalties, loss, intercept):
    """The optimum of ``1/2 ||w||^2 + penalty intercept^2 + sum of losses`` by a cone solver."""
    cp = pytest.importorskip("cvxpy")
    w, b = cp.Variable(X.shape[1]), cp.Variable() if intercept != "none" else 0.0
    f = X @ w + b
    losses = {
        "hinge": lambda: cp.pos(1 - cp.multiply(y, f)),
        "squared_hinge": lambda: cp.square(cp.pos(1 - cp.multiply(y, f))),
        "log_loss": lambda: cp.logistic(-cp.multiply(y, f)),
        "squared_error": lambda: cp.square(y - f),
    }[loss]()
    norm = cp.sum_squares(w) + (cp.square(b) if intercept == "penalised" else 0.0)
    problem = cp.Problem(cp.Minimize(0.5 * norm + penalties @ losses))
    return problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)


EXACTLY = {"tol": 1e-10, "max_iter": 100_000}
#: Model, C, loss, kind of intercept
SMOOTH = [
    (LogisticRegression(C=0.5, **EXACTLY), 0.5, "log_loss", "free"),
    (LogisticRegression(C=0.5, fit_intercept=False, **EXACTLY), 0.5, "log_loss", "none"),
    (LogisticRegression(solver="liblinear", **EXACTLY), 1.0, "log_loss", "penalised"),
    (LogisticRegression(C=3.0, class_weight="balanced", **EXACTLY), 3.0, "log_loss", "free"),
    (RidgeClassifier(alpha=0.3), 0.5 / 0.3, "squared_error", "free"),
    (RidgeClassifier(class_weight={1: 4.0}), 0.5, "squared_error", "free"),
    (LinearSVC(C=0.2, **EXACTLY), 0.2, "squared_hinge", "penalised"),
    (LinearSVC(fit_intercept=False, **EXACTLY), 1.0, "squared_hinge", "none"),
]


@pytest.mark.parametrize("model, C, loss, intercept", SMOOTH, ids=lambda value: repr(value)[:60])
@pytest.mark.parametrize("weighted_rows", [False, True])
def test_smooth_losses_have_the_optimum_of_a_cone_solver(
    model, C, loss, intercept, weighted_rows, wine
):
    X, y = wine[0][:, :4], (wine[1] > 0).astype(int)
    weights = np.where(np.arange(len(y)) % 3, 1.0, 2.5) if weighted_rows else np.ones(len(y))
    model = clone(model).fit(X, y, sample_weight=weights)
    (row,) = mmbench.certify(model, X, y, sample_weight=weights).itertuples()
    own = {"sample_weight": weights} if isinstance(model, LogisticRegression) else {}
    factors = compute_class_weight(model.class_weight, classes=np.arange(2), y=y, **own)
    penalties, labels = C * weights * factors[y], 2.0 * y - 1
    optimum = convex_optimum(X, labels, penalties, loss, intercept)
    assert_allclose([row.objective, row.dual, row.optimum, row.bound], optimum, rtol=1e-6)
    assert row.dual <= optimum * (1 + 1e-9) and row.violation < 1e-9
    assert (row.status, row.gap < 1e-6, row.labels_changed) == ("optimal", True, 0)
    coarse = clone(model).set_params(fit_intercept=model.fit_intercept)
    coarse = coarse.fit(X, y, sample_weight=weights)
    coarse.coef_ = 0.7 * model.coef_
    (moved,) = mmbench.certify(coarse, X, y, sample_weight=weights).itertuples()
    assert moved.dual < optimum < moved.objective
    assert_allclose(moved.gap, (moved.objective - optimum) / moved.objective, rtol=1e-4)


@pytest.mark.parametrize("shape", [(60, 4), (20, 50)])
def test_a_ridge_regression_has_the_optimum_of_its_closed_form(shape):
    X = np.random.default_rng(0).normal(size=shape) + 5.0
    y = X[:, 0] + np.sin(X[:, 1])
    weights = np.linspace(0.5, 2.0, len(y))
    (row,) = mmbench.certify(Ridge(alpha=0.7).fit(X, y, weights), X, y, sample_weight=weights).iloc
    means = np.average(np.column_stack([X, y]), axis=0, weights=weights)
    A, r = X - means[:-1], y - means[-1]
    w = np.linalg.solve(A.T @ (weights[:, None] * A) + 0.7 * np.eye(shape[1]), A.T @ (weights * r))
    value = 0.5 * w @ w + weights @ (r - A @ w) ** 2 / 1.4
    columns = ["objective", "dual", "optimum", "bound"]
    assert_allclose(row[columns].astype(float), value, rtol=1e-6)
    assert (row.pair, row.status) == ("y", "optimal")
    assert row.decision_change < 1e-6 and np.isnan(row.labels_changed)


def test_one_vs_rest_models_have_one_certificate_per_class(wine):
    X, y = wine
    result = mmbench.certify(RidgeClassifier(class_weight="balanced").fit(X, y), X, y)
    assert list(result.pair) == ["rest / 0", "rest / 1", "rest / 2"]
    assert (result.gap < 1e-9).all()
    for loss in ("log_loss", "squared_hinge"):
        steps = {"learning_rate": "adaptive", "eta0": 0.01, "tol": 1e-6, "random_state": 0}
        model = SGDClassifier(loss, alpha=0.05, **steps)
        assert (mmbench.certify(model.fit(X, y), X, y).gap < 0.02).all()


def rows_of_two(wine):
    return wine[0][:, :4], np.where(wine[1] > 0, "yes", "no")


#: Model, its coefficients, and the other arguments of `certify`
ARRAYS = [
    (SVC(C=2.0, gamma=0.3), {"C": 2.0, "kernel": "rbf", "gamma": 0.3}),
    (SVC(C=2.0, kernel=linear_kernel), {"C": 2.0, "kernel": linear_kernel}),
    (SVC(C=2.0, kernel="precomputed"), {"C": 2.0, "kernel": "precomputed"}),
    (LogisticRegression(C=2.0), {"C": 2.0, "loss": "log_loss"}),
    (LinearSVC(fit_intercept=False), {"C": 1, "loss": "squared_hinge", "fit_intercept": False}),
    (SGDClassifier(alpha=0.1, random_state=0), {"C": 10 / 178}),
]


@pytest.mark.parametrize("model, options", ARRAYS, ids=range(len(ARRAYS)))
def test_arrays_have_the_certificate_of_the_model(model, options, wine):
    X, y = rows_of_two(wine)
    X = X @ X.T if options.get("kernel") == "precomputed" else X
    model = clone(model).fit(X, y)
    if hasattr(model, "support_"):
        u = np.zeros(len(y))
        u[model.support_] = model.dual_coef_[0]
        options = {**options, "dual_coef": u}
    else:
        options = {**options, "coef": model.coef_}
    expected = mmbench.certify(model, X, y)
    found = mmbench.certify(X, y, intercept=model.intercept_, **options)
    pd.testing.assert_frame_equal(found, expected)
    per_row = mmbench.certify(
        X, y, intercept=model.intercept_, **{**options, "C": np.full(len(y), options["C"])}
    )
    pd.testing.assert_frame_equal(per_row, expected)


def test_dual_coefficients_without_an_intercept_need_not_sum_to_0(wine):
    """A kernel SVM without an intercept, and a kernel ridge regression."""
    X, y = rows_of_two(wine)
    t, K = np.where(y == "yes", 1.0, -1.0), rbf_kernel(X, gamma=0.3)
    u = (
        t
        * minimize(
            lambda a: 0.5 * (a * t) @ K @ (a * t) - a.sum(),
            np.full(len(t), 0.5),
            jac=lambda a: t * (K @ (a * t)) - 1,
            bounds=[(0.0, 1.0)] * len(t),
            options={"ftol": 1e-14, "gtol": 1e-9, "maxiter": 10**4},
        ).x
    )
    call = {"dual_coef": u, "C": 1.0, "kernel": "rbf", "gamma": 0.3, "fit_intercept": False}
    (row,) = mmbench.certify(X, y, **call).itertuples()
    assert_allclose([row.objective, row.dual, row.bound], row.optimum, rtol=1e-5)
    v = np.linalg.solve(K + 0.5 * np.eye(len(t)), t)
    call = {"dual_coef": v, "C": 1.0, "loss": "squared_error", "fit_intercept": False}
    (ridge,) = mmbench.certify(K, t, kernel="precomputed", **call).itertuples()
    assert_allclose([ridge.objective, ridge.dual], 0.5 * t @ v, rtol=1e-9)
    assert ridge.gap < 1e-9 and (ridge.pair, ridge.labels_changed) == ("-1.0 / 1.0", 0)


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, "either coef or dual_coef"),
        ({"coef": np.ones(4), "dual_coef": np.ones(178)}, "either coef or dual_coef"),
        ({"coef": np.ones(3)}, r"coef has 3 numbers, and X the shape \(178, 4\)"),
        ({"coef": np.ones(4), "C": None}, "C must be a finite number > 0"),
        ({"coef": np.ones(4), "C": -1}, "C must be a finite number > 0"),
        ({"coef": np.ones(4), "C": [1, 2]}, "C must be one number, or one per row"),
        ({"coef": [np.nan] * 4}, "coef: .* infs or NaNs"),
        ({"coef": np.ones(4), "intercept": np.nan}, "intercept: .* infs or NaNs"),
        ({"coef": np.ones(4), "intercept": 3, "fit_intercept": False}, "intercept is 3 although"),
        ({"coef": np.ones(4), "y": [1, np.nan] * 89}, "y contains NaN"),
        ({"coef": np.ones(4), "gama": 1}, "no argument 'gama'; did you mean 'gamma'"),
        ({"dual_coef": np.ones(9)}, "9 numbers, .* give 0 for rows that are no support vectors"),
        ({"dual_coef": np.zeros(178), "gamma": 0.5}, "give kernel='rbf', too"),
        ({"dual_coef": np.zeros(178), "kernel": lambda A, B: 3}, "no square matrix"),
        ({"dual_coef": np.zeros(178), "kernel": lambda A, B: A @ np.tri(4) @ B.T}, "not symmetric"),
        ({"dual_coef": np.zeros(178), "kernel": "rbf", "gamma": -1}, "needs gamma > 0"),
        ({"coef": np.ones(4), "loss": "hingy"}, "unknown loss 'hingy'; did you mean 'hinge'"),
        ({"coef": np.ones(4), "kernel": "rbf"}, "other kernels need dual_coef"),
        ({"dual_coef": np.ones(178)}, "signs of dual_coef differ .* alpha_i in the rows of 'yes'"),
        ({"dual_coef": np.zeros(178), "kernel": "rbf"}, "needs gamma"),
        ({"dual_coef": np.zeros(178), "kernel": "ntk"}, "kernel='ntk': give 'linear'"),
        ({"dual_coef": np.zeros(178), "kernel": "precomputed"}, "kernel matrix .* is square"),
        ({"coef": np.ones(4), "loss": "squared_error"}, "must be numbers"),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", repr(value)),  # alike in all workers
)
def test_faulty_arrays_are_one_line(options, words, wine):
    with pytest.raises(UserError, match=words) as caught:
        X, y = rows_of_two(wine)
        mmbench.certify(X, options.pop("y", y), **{"C": 1.0, **options})
    assert "\n" not in str(caught.value)


def test_arrays_beside_a_model_are_refused(wine):
    model = SVC().fit(*wine)
    with pytest.raises(UserError, match="coef is stored in the model"):
        mmbench.certify(model, *wine, coef=[1.0])
    with pytest.raises(UserError, match="3 labels; give the rows of two classes"):
        mmbench.certify(*wine, coef=np.ones(13), C=1.0)


def test_rounding_errors_of_the_objective_are_named():
    X = 500 * np.random.default_rng(0).normal(size=(30, 5))
    svm = mmbench.SVM(kernel="poly", C=1e6).fit(X, np.arange(30) % 2)
    assert svm.fits_[0].status == "optimal"
    with pytest.raises(UserError, match="scale the data if kernel values are large"):
        mmbench.certify(svm, X, np.arange(30) % 2)
