"""Preprocessing: what each step does to training and test rows."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from mmbench.config.plan import plan
from mmbench.config.read import load_config, load_configs, to_yaml
from mmbench.datasets.preprocess import check_steps, parse_steps
from mmbench.datasets.preprocess import make_preprocess as pipeline_of
from mmbench.jobs import prepare as job_data
from mmbench.jobs.job import Job


def make_preprocess(steps):
    """Return the pipeline of steps as YAML states them."""
    return pipeline_of(parse_steps(steps))


ALL = ["none", "standard", "minmax", "unit_norm", "sqrt", {"pca": 2}, {"divide": 255}]
ALL += [{"pair_pca": 2}, "pair_features"]

SCATTER = np.random.RandomState(0).uniform(-1e3, 1e3, size=(8, 4))
TABLES = [np.zeros((8, 4)), SCATTER, SCATTER * [0, 1e-320, 1e-9, 1], np.ones((8, 1)) @ SCATTER[:1]]


@given(arrays(float, (8, 4), elements=st.floats(-1e3, 1e3)), st.sampled_from(ALL))
@settings(max_examples=60, deadline=None)
@examples(X=TABLES * len(ALL), step=ALL)
def test_no_step_makes_a_value_that_is_not_finite(X, step):
    assert np.isfinite(make_preprocess(step).fit_transform(X)).all()


def test_a_constant_column_becomes_zero():
    X = np.column_stack([np.full(5, 7.0), np.arange(5.0)])
    for step in ("standard", "minmax"):
        assert np.all(make_preprocess(step).fit_transform(X)[:, 0] == 0)


def test_minmax_uses_the_range_of_the_training_rows_only():
    scaler = make_preprocess("minmax").fit([[0.0], [10.0]])
    assert scaler.transform([[5.0], [20.0]]).ravel().tolist() == [0.5, 2.0]


def test_unit_norm_rows_have_norm_one_and_zero_rows_stay():
    Z = make_preprocess("unit_norm").fit_transform([[3.0, 4.0], [0.0, 0.0]])
    assert Z.tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_pca_is_centred_not_whitened_and_without_chance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)) * [5, 4, 3, 2, 1, 0.5] + 100
    first, second = (make_preprocess({"pca": 3}).fit_transform(X) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.allclose(first.mean(axis=0), 0)
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:3]
    assert np.allclose(np.linalg.norm(first, axis=0), singular)


def test_steps_run_in_order_on_bytes():
    X = np.arange(24, dtype=np.uint8).reshape(6, 4) * 10
    Z = make_preprocess([{"divide": 255}, "minmax"]).fit_transform(X)
    assert Z.min() == 0
    assert Z.max() == 1
    assert np.allclose(make_preprocess({"divide": 255}).fit_transform(X), X / 255)


def test_none_changes_nothing():
    X = np.arange(6.0).reshape(3, 2)
    for steps in ("none", [], ["none"]):
        assert np.array_equal(make_preprocess(steps).fit_transform(X), X)


def test_a_fitted_pipeline_can_be_cloned_and_pickled():
    X = np.arange(40.0).reshape(10, 4) ** 1.5
    fitted = make_preprocess([{"divide": 2}, "standard", {"pca": 2}]).fit(X)
    clone(fitted)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))


def test_more_components_than_columns_are_refused():
    assert check_steps((("pca", 3),), n_features=3) is None
    assert check_steps((("minmax", None), ("pca", 4)), n_features=3) == (
        "pca: 4 components, but the data have 3 columns"
    )


# -- rows that hold two images side by side ------------------------------------------------------


def images(seed=0, n=12, d=5):
    return np.random.default_rng(seed).normal(size=(n, 2 * d)) + 3


def swapped(X):
    half = X.shape[1] // 2
    return np.hstack([X[:, half:], X[:, :half]])


def test_a_pair_has_the_same_features_when_its_images_are_exchanged():
    X = images()
    steps = make_preprocess([{"pair_pca": 3}, "pair_features"]).fit(X)
    np.testing.assert_array_equal(steps.transform(X), steps.transform(swapped(X)))
    assert steps.transform(X).shape == (12, 6)


def test_pair_pca_is_the_pca_of_all_training_images_and_of_no_other():
    train, test = images(0), images(1)
    pair = make_preprocess({"pair_pca": 3}).fit(train)
    single = make_preprocess({"pca": 3}).fit(np.vstack([train[:, :5], train[:, 5:]]))
    found = pair.transform(test)
    np.testing.assert_allclose(found[:, :3], single.transform(test[:, :5]))
    np.testing.assert_allclose(found[:, 3:], single.transform(test[:, 5:]))


def test_pair_features_of_bytes_do_not_overflow():
    X = np.array([[10, 200, 20, 100]], dtype=np.uint8)
    assert make_preprocess("pair_features").fit_transform(X).tolist() == [[10, 100, 200, 20000]]


def test_pair_steps_refuse_what_they_cannot_do():
    assert "pair_pca" in check_steps((("pair_pca", 6),), n_features=10)
    assert check_steps((("pair_pca", 5),), n_features=10) is None
    with pytest.raises(ValueError, match="even number of columns"):
        make_preprocess("pair_features").fit_transform(np.ones((2, 3)))


def test_sqrt_of_counts():
    assert make_preprocess("sqrt").fit_transform(np.uint8([[4, 9]])).tolist() == [[2.0, 3.0]]


def test_any_transformer_is_a_step_by_its_path():
    path = "sklearn.preprocessing.QuantileTransformer"
    steps = parse_steps([{path: {"n_quantiles": 5}}, "standard"])
    assert steps == ((path, (("n_quantiles", 5),)), ("standard", None))
    X = np.random.default_rng(0).normal(size=(20, 2))
    made = pipeline_of(steps).fit(X)
    assert made[0].get_params()["n_quantiles"] == 5
    np.testing.assert_allclose(made.transform(X).mean(axis=0), 0.0, atol=1e-12)
    assert check_steps((*steps, ("pca", 80)), 2) is None


def test_a_parameter_may_be_a_pair(tmp_path):
    path = tmp_path / "pair.yaml"
    path.write_text(
        "name: pair\ndatasets: [iris]\nprotocol: {test: {kfold: 2}}\nmachines: {svm: }\n"
        "preprocess: {sklearn.preprocessing.MinMaxScaler: {feature_range: [-1, 1]}}\n"
    )
    config = load_config(path)
    assert config.preprocess == (
        ("sklearn.preprocessing.MinMaxScaler", (("feature_range", (-1, 1)),)),
    )
    job = plan(config, tmp_path)[0]
    X = job_data.prepare(job, tmp_path, None).X_train
    assert (X.min(), X.max()) == (-1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path.write_text(to_yaml(config))
    assert load_config(path) == config
    again = Job.from_dict(json.loads(json.dumps(job.to_dict())))
    assert (again, again.key) == (job, job.key)


SAMPLER = "sklearn.kernel_approximation.RBFSampler"


def test_a_random_step_depends_on_the_split_and_the_seed_alone(tmp_path):
    def arrays(seed: int) -> list[np.ndarray]:
        """Return the training features of each job; a worker process of its own fits the steps."""
        protocol = {"test": {"kfold": 2}, "seed": seed}
        config = {"name": "random", "datasets": ["iris"], "protocol": protocol}
        config |= {"preprocess": {SAMPLER: {"n_components": 3}}, "machines": {"svm": {}, "rmm": {}}}
        found = []
        for job in plan(load_configs([config])[0], tmp_path):
            job_data._fitted.cache_clear()
            found.append(job_data.prepare(job, tmp_path, None).X_train)
        return found

    svm, rmm, svm_on_fold_2, _ = first = arrays(0)
    np.testing.assert_array_equal(svm, rmm)
    np.testing.assert_array_equal(first, arrays(0))
    for other in (svm_on_fold_2, arrays(1)[0]):
        assert np.abs(other - svm).max() > 0.1


def test_a_stated_random_state_is_kept():
    steps = parse_steps([{SAMPLER: {"random_state": 7}}, SAMPLER, "standard"])
    made = pipeline_of(steps, random_state=3)
    assert [made[0].random_state, made[1].random_state] == [7, 3]
