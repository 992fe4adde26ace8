from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor import api
from adaptor.batch_script import Element, place_of
from adaptor.client.reading import Reader
from adaptor.defaults import FIRST_JOB
from adaptor.errors import UsageError
from adaptor.shims.jobs import Jobs, Named, job_of, named, split

LARGEST_OF_SLURM = 0x03FF0000
"""MaxJobId of slurm.conf(5), at most."""


def view(**values: Any) -> api.TaskView:
    job = api.JobView(number=469762049, submitted=10.0, cpus=2, limit=60.0, cwd="/here")
    usual: dict[str, Any] = {
        "bag": 3, "task": 1, "name": "sim", "state": "done", "command": "job.sh a", "attempts": 1,
        "retries": 0, "exit_code": 0, "signal": None, "error": None, "wall": 5.0, "cpu": 4.0,
        "peak_memory": 2**20, "started": 20.0, "ended": 25.0, "node": "n1", "peak_gpu_memory": None,
        "job": job,
    }  # fmt: skip
    return api.TaskView(**{**usual, **values})


def numbered(bag: int, task: int) -> api.TaskView:
    number = Element(bag, task, None).job
    job = api.JobView(number=number, submitted=10.0, cpus=1, limit=60.0, cwd="/here")
    return view(bag=bag, task=task, job=job)


@given(st.integers(1, 2**31), st.integers(0, 2**26 - 1))
def test_a_number_names_one_task_and_no_job_of_the_scheduler(bag: int, task: int) -> None:
    number = Element(bag, task, None).job
    assert place_of(number) == (bag, task)
    assert number >= FIRST_JOB > LARGEST_OF_SLURM
    assert number % 2**32 > LARGEST_OF_SLURM, "Slurm's commands keep 32 bits"


@given(st.integers(0, LARGEST_OF_SLURM))
def test_numbers_of_the_scheduler_are_not_ours(number: int) -> None:
    assert not Named(number).ours
    with pytest.raises(ValueError, match="no number of a task"):
        place_of(number)


def test_the_array_has_the_number_of_its_first_element() -> None:
    assert [Element(3, 10 + place, "7", place).array_job for place in (0, 5)] == [469762058, 469762058]


@pytest.mark.parametrize(
    ("text", "number", "indices"),
    [
        ("7", 7, None),
        ("7_3", 7, {"3"}),
        (" 7_[1-3,5%2] ", 7, {"1", "2", "3", "5"}),
        ("7.batch", 7, None),
        ("7_*", 7, None),
    ],
)
def test_names_of_jobs(text: str, number: int, indices: set[str] | None) -> None:
    assert named(text) == Named(number, None if indices is None else frozenset(indices))


@pytest.mark.parametrize("text", ["", "x", "7_", "7_x", "-7", "7_[x]", "7_[3-1]"])
def test_no_names_of_jobs(text: str) -> None:
    assert named(text) is None


def test_ours_and_the_schedulers() -> None:
    ours, others = split(["469762049,7", "469762058_[1,2],8_[1,2]", "x"])
    assert [job.number for job in ours] == [469762049, 469762058]
    assert others == ["7", "8_[1,2]", "x"]


@pytest.mark.parametrize(
    ("values", "state", "code", "signal"),
    [
        ({}, "COMPLETED", 0, 0),
        ({"state": "failed", "exit_code": 3}, "FAILED", 3, 0),
        ({"state": "failed", "exit_code": None, "signal": 9}, "FAILED", 0, 9),
        ({"state": "failed", "exit_code": None, "error": "time-out after 5m"}, "TIMEOUT", 0, 0),
        ({"state": "failed", "exit_code": None, "error": "out of memory: 1 GiB"}, "OUT_OF_MEMORY", 0, 0),
        (
            {"state": "failed", "exit_code": None, "error": "it runs after task 0, which failed"},
            "CANCELLED",
            0,
            0,
        ),
        (
            {"state": "failed", "exit_code": None, "error": "x: the task's folder cannot be entered"},
            "FAILED",
            1,
            0,
        ),
        ({"state": "cancelled", "exit_code": None}, "CANCELLED", 0, 0),
        ({"state": "waiting", "exit_code": None, "started": None}, "PENDING", 0, 0),
        ({"state": "blocked", "exit_code": None, "started": None}, "PENDING", 0, 0),
        ({"state": "running", "exit_code": None, "started": None}, "PENDING", 0, 0),
        ({"state": "running", "exit_code": None}, "RUNNING", 0, 0),
    ],
)
def test_states_in_slurms_words(values: dict[str, Any], state: str, code: int, signal: int) -> None:
    job = job_of(view(**values), 30.0)
    assert job is not None
    assert (job.state, job.code, job.signal) == (state, code, signal)


def test_a_running_job_has_run_until_now() -> None:
    job = job_of(view(state="running", wall=None, ended=None), 30.0)
    assert job is not None
    assert (job.wall, job.ended, job.id) == (10.0, None, "469762049")


def test_tasks_of_other_bags_are_no_jobs() -> None:
    assert job_of(view(job=None), 30.0) is None


def test_many_jobs_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """squeue and sacct get hundreds of numbers from workflow managers."""
    asked: list[api.GetTasks] = []

    def answer(_reader: Reader, question: api.GetTasks) -> list[api.TaskView]:
        asked.append(question)
        if question.bag not in (3, 4):
            raise UsageError("no such bag")
        assert question.numbers is not None
        return [numbered(question.bag, task) for task in question.numbers if task < 900]

    monkeypatch.setattr(Reader, "get", answer)
    wanted = [Named(Element(bag, task, None).job) for bag in (4, 3, 5) for task in range(1_000)]
    found = Jobs().of([*wanted, wanted[0]])
    assert [(job.bag, job.task) for job in found] == [(bag, task) for bag in (4, 3) for task in range(900)]
    assert len(asked) == 3
