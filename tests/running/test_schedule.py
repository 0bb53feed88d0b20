"""The order of jobs, their share of the computer, and the estimate of the time left."""

from __future__ import annotations

import io
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.small_run import make_jobs

from mmbench.datasets.dataset import DatasetRef
from mmbench.errors import Status
from mmbench.jobs.job import SplitRef
from mmbench.jobs.record import new_record
from mmbench.running.progress import Lines, TimeLeft, duration, progress_for
from mmbench.running.runner import Schedule

ROOT = Path(__file__).parents[2]


def done(job, seconds=1.0):
    return new_record(
        job, Status.OPTIMAL, metrics={"accuracy_pct": 97.5}, wall_seconds={"training": seconds}
    )


def test_a_child_waits_for_its_parent_and_then_goes_first(jobs):
    first, child, second, _ = jobs
    schedule = Schedule(jobs, {}, slots=1)
    assert [start.job for start in schedule.starts()] == [first]
    schedule.finish(done(first))
    assert [start.job for start in schedule.starts()] == [child]
    schedule.finish(done(child))
    assert [start.job for start in schedule.starts()] == [second]


def test_a_child_whose_parent_ran_before_starts_at_once(jobs):
    parent, child = jobs[:2]
    schedule = Schedule([child], {parent.key: done(parent)}, slots=1)
    assert [start.job for start in schedule.starts()] == [child]


@pytest.mark.parametrize(
    "slots, n_ready, threads", [(2, 1, [2]), (2, 2, [1, 1]), (4, 3, [2, 1, 1]), (2, 5, [1, 1])]
)
def test_ready_jobs_share_the_slots(slots, n_ready, threads):
    parents = [job for job in make_jobs(n_ready) if job.parent is None]
    starts = list(Schedule(parents, {}, slots).starts())
    assert [start.threads for start in starts] == threads
    assert [start.alone for start in starts] == [threads == [slots]] * len(threads)


def test_children_of_a_failed_job_can_never_run_and_say_why(jobs):
    parent, child = jobs[:2]
    schedule = Schedule([parent, child], {}, slots=1)
    list(schedule.starts())
    schedule.finish(new_record(parent, Status.FAILED, "out of luck"))
    assert list(schedule.starts()) == []
    assert list(schedule.impossible()) == [
        (child, "takes its parameters from svm, which has no result: out of luck")
    ]
    assert not schedule.unfinished


def child_of_two() -> tuple[list, object]:
    parents = [job for job in make_jobs(2) if job.parent is None]
    keys = tuple(parent.key for parent in parents)
    return parents, replace(make_jobs(2)[1], parent=keys)


def test_a_child_of_several_waits_for_them_all():
    parents, child = child_of_two()
    schedule = Schedule([*parents, child], {}, slots=2)
    assert [start.job for start in schedule.starts()] == parents
    schedule.finish(done(parents[1]))
    assert list(schedule.starts()) == []
    schedule.finish(done(parents[0]))
    assert [start.job for start in schedule.starts()] == [child]
    schedule.finish(done(child))
    assert not schedule.unfinished


def test_a_child_of_several_follows_those_that_ran_before():
    (first, second), child = child_of_two()
    schedule = Schedule([second, child], {first.key: done(first)}, slots=1)
    assert [start.job for start in schedule.starts()] == [second]
    schedule.finish(done(second))
    assert [start.job for start in schedule.starts()] == [child]


def test_a_child_of_several_is_given_up_once_when_they_fail():
    parents, child = child_of_two()
    schedule = Schedule([*parents, child], {}, slots=2)
    list(schedule.starts())
    for parent in parents:
        schedule.finish(new_record(parent, Status.FAILED, "out of luck"))
    assert [job for job, _ in schedule.impossible()] == [child]
    assert not schedule.unfinished


def test_a_child_without_a_parent_can_never_run(jobs):
    schedule = Schedule([jobs[1]], {}, slots=1)
    [(child, reason)] = schedule.impossible()
    assert (child, "not among the jobs" in reason) == (jobs[1], True)


def test_the_longest_job_goes_first_with_what_waits_for_it_and_one_of_an_unknown_kind_before():
    first, child, second, _ = make_jobs(2)
    third = replace(second, machine="mmrm")
    known = {"svm": 2.0, "mmrm": 5.0}
    order = lambda jobs, known: [  # noqa: E731
        start.job
        for start in Schedule(jobs, {}, len(jobs), lambda job: known.get(job.machine)).starts()
    ]
    assert order([second, third], known) == [third, second]
    assert order([third, second], {"mmrm": 5.0}) == [second, third]
    assert order([second, first], known) == [second, first]
    assert order([third, first, child], {"svm": 3.0, "mmrm": 5.0}) == [first, third]


def test_every_cell_has_a_first_result_before_the_longest_cell_goes_on():
    parents = [job for job in make_jobs(2) if job.parent is None]
    cells = [[replace(job, machine=name) for job in parents] for name in ("mmrm", "svm", "klda")]
    times: dict[str, float] = {}
    schedule = Schedule(
        [job for cell in cells for job in cell], {}, 1, lambda job: times.get(job.machine)
    )
    order = []
    while schedule.unfinished:
        (start,) = schedule.starts()
        order.append(start.job)
        times[start.job.machine] = {"mmrm": 9.0}.get(start.job.machine, 1.0)
        schedule.finish(done(start.job))
    assert {job.machine for job in order[:3]} == {"mmrm", "svm", "klda"}
    assert order[3].machine == "mmrm"
    waiting = Schedule([*cells[1], *cells[2]], {}, 3)  # a job that runs counts
    assert [start.job.machine for start in waiting.starts()] == ["svm", "klda", "svm"]


def test_a_place_may_limit_the_threads_of_a_job_and_one_alone_has_it_to_itself():
    first, _, second, _ = make_jobs(2)
    schedule = Schedule([first, second], {}, 4, most_threads=1)
    assert [start.threads for start in schedule.starts()] == [1, 1]
    for job in (first, second):
        schedule.again_alone(job)
    [start] = schedule.starts()
    assert (start.threads, start.alone) == (1, True)
    assert not list(schedule.starts())


def test_the_time_of_a_job_is_that_of_its_size():
    job = make_jobs(1)[0]
    sizes = [replace(job, split=replace(job.split, max_train=("nested", n))) for n in (50, 500)]
    estimate = TimeLeft(sizes)
    estimate.learn(done(sizes[0], seconds=1.0))
    assert estimate.expected(sizes[0]) == 1.0
    assert estimate.expected(sizes[1]) is None


def test_a_job_that_needs_all_memory_runs_when_nothing_else_does(jobs):
    large, _, other, _ = jobs
    schedule = Schedule([large, other], {}, slots=2)
    list(schedule.starts())
    schedule.again_alone(large)
    assert list(schedule.starts()) == []
    schedule.finish(done(other))
    [start] = schedule.starts()
    assert (start.job, start.threads, start.alone) == (large, 2, True)


def test_time_left_is_that_of_similar_jobs(jobs):
    parents, children = jobs[::2], jobs[1::2]
    estimate = TimeLeft(parents)
    assert estimate.seconds(2) is None
    estimate.learn(done(children[0], seconds=10.0))  # the same machine and data set
    assert estimate.seconds(2) == pytest.approx(2 * 10.0 / 2)
    estimate.end(parents[0])
    assert estimate.seconds(2) == pytest.approx(10.0 / 2)
    estimate.end(parents[1])
    assert estimate.seconds(2) == 0


def test_machines_without_a_finished_job_are_weighted_by_their_usual_times(jobs):
    slow = replace(jobs[0], machine="m4")
    estimate = TimeLeft([jobs[0], slow])
    estimate.learn(done(jobs[1], seconds=1.0))
    estimate.end(jobs[0])
    assert estimate.seconds(1) > 1.1
    estimate.learn(done(slow, seconds=100.0))
    assert estimate.seconds(1) == pytest.approx(100.0)


def test_the_time_left_of_a_table_is_right_after_a_tenth_of_its_jobs(monkeypatch):
    """With the measured seconds of fsvm_table2, on a clock that only jobs move; five draws, as one
    draw of a cell's first job may be far from the mean."""
    table = pd.read_csv(ROOT / "results/reference/fsvm_table2/table.csv")
    table = table[table.metric.isin(["seconds_selection", "seconds_training", "seconds_test"])]
    cells = table.groupby(["dataset", "kernel", "machine"]).measured.sum()
    template, now, ratios = make_jobs(1)[0], [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    seconds = {
        replace(
            template,
            dataset=DatasetRef(dataset),
            split=replace(template.split, repeat=repeat),
            kernel=kernel,
            machine=machine,
        ): mean
        for (dataset, kernel, machine), mean in cells.items()
        for repeat in range(20)
    }
    for seed in range(5):
        noise = np.random.default_rng(seed).lognormal(sigma=0.5, size=len(seconds))
        takes = {
            job.key: t * factor for (job, t), factor in zip(seconds.items(), noise, strict=True)
        }
        now[0], left, running = 0.0, TimeLeft(seconds), []
        schedule = Schedule(seconds, {}, 2, left.expected, 2)
        for count in range(len(seconds)):
            for start in schedule.starts():
                running.append((now[0] + takes[start.job.key], start.job))
            now[0], job = min(running, key=itemgetter(0))
            running.remove((now[0], job))
            record = done(job, takes[job.key])
            schedule.finish(record)
            left.end(job)
            left.learn(record)
            if count == len(seconds) // 10:
                estimate, at = left.seconds(2), now[0]
        ratios.append(estimate / (now[0] - at))
    assert 0.75 < np.median(ratios) < 1.33


def test_without_a_terminal_each_job_is_a_line(jobs):
    stream = io.StringIO()
    progress = progress_for(2, stream)
    assert isinstance(progress, Lines)
    for seconds, gap in (19, ""), (21, ""), (41, ""), (43, "gap 0.1"), (85, ""):
        progress.running(jobs[0], seconds, None, gap)
    progress.finished(jobs[0], done(jobs[0]), 75)
    progress.finished(jobs[1], new_record(jobs[1], Status.FAILED, "out of luck"), 0)
    assert stream.getvalue().splitlines() == [
        "2 jobs to run",
        "wine, split 1.1, svm rbf: still running after 21 s",
        "wine, split 1.1, svm rbf: still running after 43 s (gap 0.1)",
        "[1/2] wine, split 1.1, svm rbf: 97.50 % correct, 1.0 s, 1 min 15 s left",
        "[2/2] wine, split 1.1, svm rbf: failed: out of luck",
    ]


def test_a_line_counts_repeats_and_folds_from_one_and_leaves_compiling_out(job):
    stream = io.StringIO()
    other = replace(job, split=SplitRef("kfold", (5,), repeat=1, fold=3))
    record = {**done(other), "wall_seconds": {"warm_up": 30.0, "training": 1.0}}
    Lines(1, stream).finished(other, record, None)
    assert stream.getvalue() == "[1/1] wine, split 2.4, svm rbf: 97.50 % correct, 1.0 s\n"


def test_a_terminal_shows_a_bar(jobs):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    bar = progress_for(2, stream)
    bar.running(jobs[0], 40, 90, "gap 0.1")
    bar.finished(jobs[0], done(jobs[0]), 75)
    bar.finished(jobs[1], new_record(jobs[1], Status.FAILED, "out of luck"), None)
    bar.close()
    assert (
        "1 min 30 s left; wine, split 1.1, svm rbf: running for 40 s (gap 0.1)" in stream.getvalue()
    )
    assert "1/2 jobs" in stream.getvalue()
    assert "1 min 15 s left" in stream.getvalue()
    assert "wine, split 1.1, svm rbf: failed: out of luck" in stream.getvalue()


def test_durations_never_show_sixty_seconds():
    assert [duration(s) for s in (9.96, 59.7, 119.8, 3599.9)] == [
        "10 s",
        "1 min 00 s",
        "2 min 00 s",
        "1 h 00 min",
    ]
