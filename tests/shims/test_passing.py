"""Which small jobs go to the scheduler at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from adaptor.api import SlotsView, SlotView
from adaptor.client.bags import Client
from adaptor.shims import passing
from adaptor.shims.passing import Look, OwnJob, look_of, own_jobs, starts_at_once
from adaptor.shims.rules import Dependencies, Rules
from adaptor.shims.small_jobs import SmallJob
from tests.shims.test_small_jobs import BODY, given_options, small
from tests.shims.test_small_jobs import quiet as quiet

NOW = 1000.0


def slot(tasks: int | None = 4, start: float = NOW, end: float | None = None) -> SlotView:
    return SlotView(start=start, end=end, processors=4, p=4, tr=600, tasks=tasks)


def view(
    *slots: SlotView, observed: float | None = NOW, in_system: int | None = None, waiting: int = 9
) -> SlotsView:
    return SlotsView(
        site="hpc",
        observed=observed,
        processors=8,
        in_system=in_system,
        waiting=waiting,
        free=[],
        slots=list(slots),
        problem="" if observed else "squeue hangs",
    )


def look(*views: SlotsView, own: list[OwnJob] | None = None, before: Look | None = None) -> Look:
    return look_of(views, own or [], small(), NOW, before)


def job(*, waits: bool = True, submitted: float = NOW - 60, processors: int = 1) -> OwnJob:
    return OwnJob(waits, submitted, processors, 300.0)


def test_a_free_slot_takes_jobs_until_it_is_full() -> None:
    left = look(view(slot(tasks=2)))
    for _ in range(2):
        assert left.takes(1, NOW + 300)
        left = left.without(1)
    assert not left.takes(1, NOW + 300)


@pytest.mark.parametrize(
    "views",
    [
        [view()],
        [view(slot(start=NOW + 60))],
        [view(slot(end=NOW + 200))],
        [view(slot(tasks=None))],
        [view(slot(), observed=None)],
    ],
    ids=["none", "later", "too short", "no task fits", "the queue is not read"],
)
def test_no_slot(views: list[SlotsView]) -> None:
    assert not look(*views).takes(1, NOW + 300)


def test_all_elements_of_an_array_fit_or_none_is_passed_on() -> None:
    assert look(view(slot(tasks=4))).takes(4, NOW + 300)
    assert not look(view(slot(tasks=4))).takes(5, NOW + 300)


@pytest.mark.parametrize(("allowed", "own", "left"), [(None, 9, None), (10, 3, 2), (4, 2, 0), (1, 0, 0)])
def test_pilots_get_half_of_the_jobs_that_limits_allow(
    allowed: int | None, own: int, left: int | None
) -> None:
    found = look(view(slot(), in_system=allowed), own=[job(waits=False)] * own)
    assert found.jobs == left
    assert found.takes(1, NOW + 300) is (left != 0)


@pytest.mark.parametrize(
    ("waiting", "takes"),
    [
        (job(), False),
        (job(submitted=NOW - 1), True),
        (job(waits=False), True),
        (job(processors=64), True),
    ],
    ids=["the same size", "only just", "it runs", "another size"],
)
def test_a_job_of_the_same_size_that_waits_shows_that_it_would_not_start(
    waiting: OwnJob, takes: bool
) -> None:
    assert look(view(slot()), own=[waiting]).takes(1, NOW + 300) is takes


def test_a_queue_that_was_not_read_again_has_not_become_emptier() -> None:
    first = look(view(slot(tasks=4))).without(4)
    assert not look(view(slot(tasks=4)), before=first).takes(1, NOW + 300)
    assert look(view(slot(tasks=4), observed=NOW + 1), before=first).takes(1, NOW + 300)


def test_what_squeue_says_of_own_jobs() -> None:
    said = (
        "PENDING|1795983589|2|1:00:00|Priority\n"
        "RUNNING|1795983590|1|UNLIMITED|None\n"
        "PENDING|1795983590|1|5:00|Dependency\n"
    )
    assert own_jobs(said) == [
        OwnJob(True, 1795983589.0, 2, 3600.0, "Priority"),
        OwnJob(False, 1795983590.0, 1, None, "None"),
        OwnJob(False, 1795983590.0, 1, 300.0, "Dependency"),
    ]


@pytest.mark.parametrize(
    ("waiting", "own", "takes"),
    [
        (0, [], True),
        (2, [job(), job()], True),
        (3, [job(), job()], False),
        (100, [job()] * 100, False),
        (1, [msgspec.structs.replace(job(), reason="AssocMaxJobsLimit")], False),
    ],
    ids=["empty", "own jobs", "another user's", "too many", "a limit"],
)
def test_jobs_may_wait_for_jobs_of_the_same_user(waiting: int, own: list[OwnJob], takes: bool) -> None:
    assert look(view(waiting=waiting), own=own).takes(1, NOW + 300) is takes


def test_nothing_waits_for_what_never_starts() -> None:
    never = msgspec.structs.replace(view(waiting=0), no_room="no node has 99 processors")
    assert not look(never).takes(1, NOW + 300)


class Asked:
    """In place of a client: each answer is an open slot for three tasks."""

    def __init__(self) -> None:
        self.questions: list[Any] = []

    def ask(self, question: Any, _timeout: float) -> list[SlotsView]:
        self.questions.append(question)
        now = time.time()
        return [view(slot(tasks=3, start=now), observed=now)]


@pytest.fixture
def scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("sbatch", ""), ("squeue", ""), ("sinfo", "echo debug; echo 'batch*'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("ADAPTOR_DIR", str(tmp_path / "state"))
    return tmp_path


def at_once(asked: Asked, job: SmallJob) -> bool:
    return starts_at_once(cast("Client", asked), job)


def test_a_look_serves_several_jobs(scheduler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    assert [at_once(asked, small()) for _ in range(4)] == [True, True, True, False]
    assert [question.sites for question in asked.questions] == [["hpc"]]
    monkeypatch.setattr(passing, "AGAIN", -1.0)  # it is over at once
    assert [at_once(asked, small("-c", "2")) for _ in range(4)] == [True] * 4
    assert len(asked.questions) == 5


def test_the_slots_of_another_partition_say_nothing(scheduler: Path) -> None:
    """Without `--partition`, sbatch takes the scheduler's default."""
    asked = Asked()
    assert at_once(asked, small("-p", "batch"))
    (scheduler / "sinfo").write_text("#!/bin/sh\necho 'debug*'; echo batch\n")
    assert not at_once(asked, small("-c", "2"))
    assert at_once(asked, small("-c", "2", "-p", "batch"))
    assert [question.task.processors for question in asked.questions] == [1, 2]


def test_where_nothing_is_passed_on(scheduler: Path) -> None:
    asked = Asked()
    always = SmallJob(BODY, "job.sh", given_options(), ["a"], Rules(always=True), Dependencies())
    assert not at_once(asked, always)
    assert not at_once(asked, small("-a", "1-3%1"))
    assert asked.questions == []
    (scheduler / "squeue").write_text("#!/bin/sh\nexit 1\n")
    assert not at_once(asked, small()), "squeue does not answer"
    (scheduler / "sbatch").unlink()
    assert not at_once(asked, small("-c", "2")), "there is no scheduler"
    assert asked.questions == []
