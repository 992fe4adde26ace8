"""The schedule of a trace and its queues; what a log of a site does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor_experiments.forecasts.history import history_of, queue_at, sample_of
from adaptor_experiments.forecasts.trace_queues import TraceFile
from adaptor_simulation.files import TraceError
from tests.experiments.forecasts.lived import history


def test_the_queue_is_that_of_the_submission() -> None:
    """One job has ended, one runs, one waits, the asked one comes last; a later one is not known."""
    lived = history(
        (0, 0, 10, 60, 4), (5, 10, 500, 600, 3), (20, 900, 10, 60, 2), (30, 950, 10, 60, 1), (31, 31, 1, 1, 1)
    )
    queue, since = queue_at(lived, 3)
    assert queue.now == 30.0
    assert [(job.id, job.end) for job in queue.running] == [("1", 610.0)]
    assert [job.id for job in queue.pending] == ["2", "3"]
    assert since == {"1": 10.0}
    assert queue.limits == {"1": 600.0}
    assert set(queue.owners) == {"1", "2"}


def test_a_sample_is_of_the_later_jobs_and_always_the_same() -> None:
    lived = history(*((each, each, 1, 1, 1) for each in range(100)))
    assert sample_of(lived, 20, 7) == sample_of(lived, 20, 7)
    assert min(sample_of(lived, 90, 7)) == 10


def line(number: int, submit: int, wait: int, *, user: int = 1, preceding: int = -1) -> str:
    return f"{number} {submit} {wait} 100 4 -1 -1 4 1000 -1 1 {user} 1 -1 -1 1 {preceding} -1"


def traced(folder: Path, *lines: str) -> TraceFile:
    path = folder / "site.swf"
    path.write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    return TraceFile(path)


def test_waits_belong_to_their_jobs_whatever_the_order_of_the_numbers(tmp_path: Path) -> None:
    """Slurm's numbers of array elements descend; a search in them gave jobs the waits of others."""
    trace = traced(tmp_path, line(3, 0, 7, user=30), line(2, 10, 8, user=20), line(2, 20, 9, user=21))
    lived = history_of(trace, "recorded")
    assert lived.waits.tolist() == [7, 8, 9]
    assert lived.owners == ["30", "20", "21"]


def test_a_trace_without_waits_is_an_error_that_names_the_way_out(tmp_path: Path) -> None:
    trace = traced(tmp_path, line(1, 0, -1), line(2, 9, -1))
    with pytest.raises(
        TraceError, match=r"does not say how long jobs waited.*--schedulers conservative,easy"
    ):
        history_of(trace, "recorded")
    assert len(history_of(trace, "easy").jobs) == 2


def test_jobs_that_start_before_their_submission_are_left_out_and_counted(tmp_path: Path) -> None:
    lived = history_of(traced(tmp_path, line(1, 500, -300), line(2, 600, 5), line(3, 700, -1)), "recorded")
    assert lived.waits.tolist() == [5]
    assert "1 job left out that started before the submission" in lived.notes
    assert "1 job without a known wait left out" in lived.notes
    with pytest.raises(TraceError, match="no job starts after its submission"):
        history_of(traced(tmp_path, line(1, 500, -300)), "recorded")


def test_jobs_that_waited_for_another_one_stay_in_the_queue_but_are_not_judged(tmp_path: Path) -> None:
    trace = traced(
        tmp_path, *(line(each, 10 * each, 5, preceding=1 if each == 15 else -1) for each in range(1, 21))
    )
    lived = history_of(trace, "recorded")
    assert 14 not in sample_of(lived, 100, 1)
    assert len(sample_of(lived, 100, 1)) == 17
    assert "1 job that waited for another one not judged" in lived.notes
    assert len(sample_of(history_of(trace, "easy"), 100, 1)) == 18, "a simulated scheduler holds no job"


def test_what_a_log_of_one_user_and_of_too_many_processors_leaves_out_is_said(tmp_path: Path) -> None:
    lived = history_of(traced(tmp_path, line(1, 0, 0), line(2, 9, 0)), "recorded")
    assert any("all jobs are of one user" in note for note in lived.notes)
    assert any("jobs hold up to 8 of 4 processors" in note for note in lived.notes)
    assert queue_at(lived, 1)[0].running, "and their queue is forecast all the same"
    unnamed = history_of(traced(tmp_path, line(1, 0, 0, user=-1), line(2, 900, 0, user=-1)), "recorded")
    assert unnamed.notes == ("no users are named: how long jobs run is learned of all together",)
    assert unnamed.owners == ["", ""]


def test_a_span_is_a_part_of_the_time() -> None:
    lived = history(*((each * each, each * each, 1, 1, 1) for each in range(101)))
    assert min(sample_of(lived, 500, 7, (0.25, 1.0))) == 50
    assert max(sample_of(lived, 500, 7, (0.0, 0.25))) == 50
