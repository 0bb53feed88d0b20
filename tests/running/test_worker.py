"""One job: what its record says is what plain scikit-learn says."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mmbench.commands.dry_run import dry_run, sizes_of
from mmbench.errors import NotEnoughMemory, Status, UserError
from mmbench.jobs import evaluate
from mmbench.jobs.job import DatasetRef, SelectRef
from mmbench.jobs.limits import Limits
from mmbench.jobs.prepare import prepare
from mmbench.jobs.record import is_done
from mmbench.jobs.train import job_seeds, make_machine, own_part, rehearse
from mmbench.machines import FSVM, KLDA, MACHINES, MMRM, SVM
from mmbench.machines.mmrm.mmrm import PROGRAM_BYTES as MMRM_BYTES
from mmbench.memory import TrainingSize
from mmbench.running import forecast
from mmbench.running.forecast import DATA_COPIES, Sizes, estimate_bytes, threads_that_fit
from mmbench.running.local import LocalExecutor
from mmbench.running.worker import Context, execute


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_decisions_beyond_single_precision_are_stored_as_its_largest(job, context, monkeypatch):
    huge = lambda machine, X: np.full((len(X), 3), 1e200)  # noqa: E731
    monkeypatch.setattr(SVM, "pairwise_decision_function", huge)
    record, arrays = execute(job, context)
    assert is_done(record)
    assert (arrays["decisions"] == np.finfo(np.float32).max).all()


def test_a_job_is_a_grid_search_on_the_scaled_training_part(job, context):
    record, arrays = execute(job, context)
    X, y = load_wine(return_X_y=True)
    test = arrays["test_index"]
    train = np.setdiff1d(np.arange(len(y)), test)
    scaler = StandardScaler().fit(X[train])
    folds = RepeatedStratifiedKFold(
        n_splits=3, n_repeats=1, random_state=record["seeds"]["selection"]
    )
    search = GridSearchCV(SVC(), {name: list(values) for name, values in job.grid}, cv=folds)
    search.fit(scaler.transform(X[train]), y[train])
    theirs = {tuple(p.values()): s for p, s in zip(*_points_and_scores(search), strict=True)}
    ours = {(row["C"], row["gamma"]): row["score"] for row in record["selection"]["scores"]}
    assert ours == pytest.approx(theirs)
    final = make_pipeline(StandardScaler(), SVC(**record["selection"]["params"]))
    predicted = final.fit(X[train], y[train]).predict(X[test])
    np.testing.assert_array_equal(_codes(arrays["predicted"]), predicted)
    assert record["metrics"]["errors_count"] == (predicted != y[test]).sum()
    assert record["split"]["n_train"] == len(train)


def _points_and_scores(search):
    return search.cv_results_["params"], search.cv_results_["mean_test_score"]


def _codes(labels):
    return np.unique(labels, return_inverse=True)[1]


def test_a_record_answers_a_sceptic(job, context):
    record, arrays = execute(job, context)
    assert is_done(record)
    assert record["status"] == "optimal"
    assert record["fits"]["n"] == len(record["per_pair"]) == arrays["decisions"].shape[1] == 3
    assert record["fits"]["statuses"] == {"optimal": 3}
    assert record["selection"]["n_points"] == 4
    assert set(record["cpu_seconds"]) >= {"selection", "training", "test"}
    assert record["environment"]["libraries"]["scikit-learn"]
    assert set(record["environment"]["threads"]["libraries"].values()) == {1}


def test_the_child_fits_at_the_parameters_of_its_parent(jobs, context):
    parent, child = jobs[:2]
    chosen = execute(parent, context)[0]["selection"]["params"]
    given = Context(context.data, inherited=([chosen],))
    record, arrays = execute(child, given)
    direct = replace(parent, grid=(), params=tuple(sorted(chosen.items())))
    expected = execute(direct, context)[1]
    assert record["selection"]["params"] == chosen
    np.testing.assert_array_equal(arrays["predicted"], expected["predicted"])
    np.testing.assert_allclose(arrays["decisions"], expected["decisions"], atol=5e-3)


def test_a_choice_per_pair_is_inherited_per_pair(job, context):
    per_pair = replace(job, select=SelectRef(folds=3, scope="pair"))
    chosen = execute(per_pair, context)[0]["selection"]["params"]
    assert len(chosen) == 3
    child = replace(job, grid=(("C", (2, 20)),), use="svm")
    record, _ = execute(child, Context(context.data, inherited=(chosen,)))
    assert [row["gamma"] for row in record["selection"]["params"]] == [
        row["gamma"] for row in chosen
    ]
    assert {row["C"] for row in record["selection"]["params"]} <= {2, 20}


def test_what_a_job_states_overrides_what_it_inherits(job):
    stated = replace(job, params=(("C", 3),), grid=())
    machine = make_machine(stated, threads=1, seed=0)
    assert machine.C == 3
    assert own_part(machine, stated, [{"C": 1, "gamma": 2, "B": 9}]) == [{"gamma": 2}]
    assert own_part(machine, stated, [{"C": 1, "gamma": 2}]) == [{"gamma": 2}]


def test_machines_on_one_split_share_seeds_and_splits_do_not(jobs):
    assert job_seeds(jobs[0]) == job_seeds(jobs[1])
    assert job_seeds(jobs[0])["selection"] != job_seeds(jobs[2])["selection"]


def test_the_seed_of_the_protocol_changes_every_seed_of_a_job(job):
    own, other = (job_seeds(replace(job, split=replace(job.split, seed=s))) for s in (0, 1))
    assert not set(own.values()) & set(other.values())


def test_pairs_are_trained_together_if_the_memory_limit_allows(job, context):
    data = prepare(job, context.data, None)
    n_test, n_columns = data.X_test.shape
    sizes = Sizes(data.class_counts, n_test, n_columns, n_columns)
    one, two = (estimate_bytes(job, sizes, threads) for threads in (1, 2))
    for limit, threads in ((None, 2), (two, 2), (one, 1), (one / 2, 1)):
        given = replace(context, threads=2, limits=Limits(memory=limit))
        record, _ = execute(job, given)
        assert record["environment"]["threads"]["pairs"] == threads


def test_a_smoke_run_trains_on_fewer_rows_and_tests_on_all(job, context):
    record, _ = execute(replace(job, split=replace(job.split, max_train=40)), context)
    assert (record["split"]["n_train"], record["split"]["n_test"]) == (40, 53)


def test_a_grid_of_one_point_is_taken_without_a_search(job, context):
    record, _ = execute(replace(job, grid=(("C", (3.0,)),)), context)
    assert record["selection"]["params"]["C"] == 3.0
    assert record["selection"]["scores"] == []


def compiled():
    """Return the signatures for which every compiled function of ours exists in this process."""
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in sys.modules.items() if name.startswith("mmbench")]
    functions = {f for m in modules for f in vars(m).values() if isinstance(f, Dispatcher)}
    return {f"{f.__module__}.{f.__name__}": set(f.signatures) for f in functions}


#: Machines, and aliases whose parameters choose other routes.
REHEARSED = (*MACHINES, "mamc_b", "emamc", "fsvm_semi", "fsvm_opt", "rmm_c_equals_d", "rmm_b1")


def compiled_while_timed(job, context):
    """Return what each machine compiles in a job after its rehearsal."""
    found = {}
    for machine in REHEARSED:
        rehearse(machine, job.kernel, None)
        before = compiled()
        record, _ = execute(replace(job, machine=machine, grid=(("tol", (1e-3, 1e-2)),)), context)
        assert is_done(record), record["reason"]
        found[machine] = {name: new for name, new in compiled().items() if new != before.get(name)}
    return found


def test_the_rehearsal_compiles_everything_so_that_no_stage_does(job, context):
    executor = LocalExecutor(1)  # a process in which nothing is compiled yet
    task = executor.submit(compiled_while_timed, job, context)
    while not executor.wait(1):
        continue
    executor.close()
    assert task.result() == {machine: {} for machine in REHEARSED}


class TestFailures:
    def test_too_few_rows_for_the_folds_is_the_users_to_mend(self, job, context):
        record, arrays = execute(replace(job, select=SelectRef(folds=60)), context)
        assert not is_done(record)
        assert arrays == {}
        assert record["wrong_input"]
        assert record["traceback"] == ""
        assert "fewer than 60 folds of 'select'" in record["reason"]

    def test_data_that_changed_since_planning_are_refused(self, job, context):
        record, _ = execute(replace(job, dataset_hash="0" * 64), context)
        assert "changed since the run was planned" in record["reason"]

    def test_a_bug_leaves_its_traceback_and_one_line(self, job, context, monkeypatch):
        def broken(*_):
            raise RuntimeError("first line\nsecond line")

        monkeypatch.setattr(evaluate, "evaluate", broken)
        record, _ = execute(job, context)
        assert record["status"] == "failed"
        assert record["reason"] == "RuntimeError: first line second line"
        assert "in broken" in record["traceback"]
        assert not record["wrong_input"]
        assert record["cpu_seconds"]["training"] > 0

    def test_a_job_too_large_for_memory_is_refused_before_it_starts(
        self, job, context, monkeypatch
    ):
        # the process of all tests may hold more memory than the job needs
        monkeypatch.setattr(forecast, "private_bytes", lambda: 0)
        monkeypatch.setattr(forecast, "available_bytes", lambda: 2**20)
        record, _ = execute(job, context)
        assert record["status"] == Status.MEMORY_LIMIT
        assert "needs about" in record["reason"]
        assert "do not store the whole kernel matrix" in record["reason"]
        assert record["wall_seconds"]["training"] == 0


def test_thread_pools_are_looked_for_once_per_worker(job, context, monkeypatch):
    from threadpoolctl import ThreadpoolController

    looked, find = [], ThreadpoolController.__init__
    fixed = replace(job, grid=(), params=(("C", 1.0),))
    execute(fixed, context)
    monkeypatch.setattr(
        ThreadpoolController, "__init__", lambda *args: looked.append(1) or find(*args)
    )
    record, _ = execute(fixed, context)
    assert set(record["environment"]["threads"]["libraries"].values()) == {1}
    assert not looked


class TestMemory:
    MNIST = Sizes((6742, 6131, 5958, 5923, 6265, 5421, 5918, 5851, 5949, 6000), 10000, 80, 784)

    def test_a_pair_of_mnist_takes_its_gram_matrix(self, job):
        fixed = replace(job, grid=(), machine="klda")
        gram = KLDA().bytes_needed(TrainingSize(self.MNIST.largest_pair, 80))
        assert gram < estimate_bytes(fixed, self.MNIST) < gram + 2 * 2**30

    def test_parts_of_a_matrix_take_what_the_user_gives(self, job):
        fixed = replace(job, grid=())
        small, large = (
            estimate_bytes(replace(fixed, params=(("cache_size", size),)), self.MNIST)
            for size in (100, 300)
        )
        assert large - small == 200e6
        assert large < 2 * 2**30

    def test_the_matrix_of_a_very_large_pair_is_not_stored_by_a_search(self, job):
        sizes = Sizes((30_000, 30_000), 10_000, 80, 784)
        assert estimate_bytes(job, sizes) < 4 * 2**30

    def test_threads_are_given_up_before_the_job_is(self, job, monkeypatch):
        monkeypatch.setattr(forecast, "private_bytes", lambda: 0)
        fixed = replace(job, grid=(), params=(("cache_size", 100),))
        one, two = (estimate_bytes(fixed, self.MNIST, threads) for threads in (1, 2))
        assert one < two
        assert threads_that_fit(fixed, self.MNIST, 2, limit=two) == 2
        assert threads_that_fit(fixed, self.MNIST, 2, limit=two - 1) == 1
        assert threads_that_fit(fixed, self.MNIST, 2, limit=one - 1) == 1  # it may need less
        with pytest.raises(NotEnoughMemory, match=r"GiB of memory, .* may be used; use fewer rows"):
            threads_that_fit(fixed, self.MNIST, 2, share=0.0)

    def test_parts_of_the_matrix_count_up_to_the_most_that_a_machine_takes(self):
        most, size = MMRM_BYTES, TrainingSize(self.MNIST.largest_pair, 80)
        assert most < MMRM().bytes_needed(size) < most + size.grams(1)  # which need not be stored
        assert MMRM().bytes_needed(TrainingSize(400, 5)) == 13 * 8 * 400**2

    @pytest.mark.parametrize(
        "machine", ["lda", "mpm", "mempm", "m4", "svm", "klda", "sigma_svm", "mmrm", "rmm"]
    )
    def test_many_rows_of_few_columns_need_no_gram_matrix_of_a_linear_machine(self, job, machine):
        linear = replace(job, machine=machine, kernel="linear")
        for grid in (linear.grid, ()):
            planned = replace(linear, grid=grid)
            assert estimate_bytes(planned, Sizes((20000, 20000), 10000, 10, 10)) < 2 * 2**30
        assert estimate_bytes(replace(linear, kernel="rbf"), self.MNIST) > 2 * 2**30

    def test_pairs_that_are_trained_jointly_take_the_matrix_of_all_rows(self, job):
        fixed, ten = replace(job, grid=(), machine="fsvm"), Sizes((500,) * 10, 100, 9, 9)
        gram = FSVM(kernel="rbf").bytes_needed(TrainingSize(5000, 9))
        assert gram < estimate_bytes(fixed, ten) < gram + 2**30
        pair = replace(ten, class_counts=(2500, 2500))
        assert estimate_bytes(fixed, pair, 8) == estimate_bytes(fixed, pair, 1)

    def test_inner_splits_of_pairs_that_are_trained_jointly_run_in_threads(self, job):
        fsvm, sizes = replace(job, machine="fsvm"), Sizes((1000,) * 3, 100, 9, 9)
        two, five = (estimate_bytes(fsvm, sizes, threads) for threads in (2, 5))
        assert five - two > 3 * FSVM(kernel="rbf").bytes_needed(TrainingSize(2000, 9))
        rest = replace(fsvm, select=SelectRef(folds=None))
        few, many = (estimate_bytes(rest, replace(sizes, n_rest=n)) for n in (0, 8000))
        assert many - few > 2 * 8 * (11_000**2 - 3000**2)  # gamma has two values

    def test_rows_left_out_for_validation_leave_the_matrix_of_the_training_rows(self, job):
        rest, sizes = replace(job, select=SelectRef(folds=None)), Sizes((9000, 9000), 0, 9, 9, 9000)
        more = estimate_bytes(rest, sizes) - estimate_bytes(replace(rest, grid=()), sizes)
        assert more > 0.99 * 4 * 18000**2

    @pytest.mark.parametrize("folds", [5, None])
    def test_a_search_of_another_packages_classifier_stores_no_kernel_matrix(self, job, folds):
        forest, select = "sklearn.ensemble:RandomForestClassifier", SelectRef(folds=folds)
        planned = replace(job, machine=forest, grid=(("max_depth", (3, 9)),), select=select)
        assert estimate_bytes(planned, Sizes((9000, 9000), 8000, 9, 9, 9000)) < 2**30

    def test_rows_left_out_for_validation_are_loaded_and_preprocessed(self, job):
        small, large = (
            estimate_bytes(replace(job, grid=()), Sizes((100, 100), 50, 10, 20, n_rest))
            for n_rest in (0, 10**6)
        )
        assert large - small == 8 * 10**6 * (DATA_COPIES * 10 + 20)

    def test_few_rows_of_many_columns_need_one(self, job):
        linear = replace(job, grid=(), kernel="linear")
        assert estimate_bytes(linear, Sizes((9000, 9000), 10, 9000, 9000)) > 2 * 8 * 18000**2

    def test_two_classes_are_one_pair_whatever_the_threads(self, job):
        sizes = Sizes((400, 300), 100, 5, 5)
        assert estimate_bytes(job, sizes, 8) == estimate_bytes(job, sizes, 1)

    def test_a_plan_knows_the_sizes_without_the_data(self, job):
        sizes = sizes_of(job)  # of the card of wine
        record_sizes = (178 - 53, 53, 13, 13)
        assert (sizes.n_test, sizes.n_features, sizes.n_raw) == record_sizes[1:]
        assert abs(sizes.n_train - record_sizes[0]) <= 3
        fewer = replace(job, split=replace(job.split, max_train=50))
        assert sizes_of(fewer).n_train <= 53

    def test_a_dry_run_reads_tables_of_openml_from_the_places_of_data_alone(
        self, tmp_path, monkeypatch
    ):
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        (tmp_path / "mirror" / "openml").mkdir(parents=True)
        rows = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(20))
        table = f"@relation t\n@attribute x numeric\n@attribute y {{a,b}}\n@data\n{rows}"
        (tmp_path / "mirror/openml/7.arff").write_text(table)
        (tmp_path / "mirror/openml/7.json").write_text('{"target": "y", "ignored": []}')
        protocol = {"protocol": {"test": {"holdout": 0.5}, "repeats": 2}}
        own = {"name": "own", "datasets": [{"openml": 7}], "machines": {"lda": {}}, **protocol}
        there = {"store": tmp_path / "store", "mirror": str(tmp_path / "mirror")}
        assert "own: 2 jobs, 0 of them stored" in dry_run(own, tmp_path / "results", **there)
        with pytest.raises(UserError, match="openml:7: not in the store or the mirror"):
            dry_run(own, tmp_path / "results", store=tmp_path / "store")
        assert {path.name for path in tmp_path.iterdir()} == {"here", "mirror"}
        assert not list((tmp_path / "here").iterdir())

    def test_a_card_with_many_draws_is_planned_by_one_of_them(self, job):
        split = replace(job.split, rule="predefined", args=())
        draw = replace(job, dataset=DatasetRef("toy_1"), split=split)
        assert sizes_of(draw).class_counts == (120, 120)
