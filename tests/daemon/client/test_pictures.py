"""The picture of a queue: what others hold over time, and where own pilots fit."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from adaptor.api import OwnStart, QueueStep
from adaptor.crafting.availability import availability
from adaptor.daemon.client.pictures import MOST_STEPS, queue_picture
from adaptor.model import PendingJob, QueueState, RunningJob
from tests.crafting.crafting_strategies import queues
from tests.examples import examples


def test_own_jobs_are_no_part_of_what_others_hold() -> None:
    """Others hold 32 for 20 minutes, then all for an hour; an own job runs, another waits for the end."""
    queue = QueueState(
        now=1000,
        processors=64,
        running=(RunningJob("theirs", 32, 2200), RunningJob("ours", 8, 1500)),
        pending=(PendingJob("planned", 64, 3600, 2200), PendingJob("waits", 60, 600)),
    )
    found = queue_picture("hpc", queue, {"ours": 1, "waits": 2, "elsewhere": 3})
    assert found.steps == [QueueStep(1000, 32, 0), QueueStep(2200, 0, 64), QueueStep(5800, 0, 0)]
    assert found.starts == [OwnStart(2, 5800)]
    assert (found.observed, found.processors) == (1000, 64)


def test_a_job_that_never_starts_has_no_start() -> None:
    queue = QueueState(now=0, processors=4, pending=(PendingJob("large", 5, 600),))
    assert queue_picture("hpc", queue, {"large": 1}).starts == []


@given(queues(planned=True))
def test_what_is_left_white_is_free_beside_all_other_jobs(queue: QueueState) -> None:
    found = queue_picture("hpc", queue, {})
    free = availability(queue)
    for step in found.steps:
        assert step.running >= 0
        assert step.planned >= 0
        assert queue.processors - step.running - step.planned == free.free_at(step.time)


@given(st.integers(0, 2**32))
@examples(10)
def test_thousands_of_jobs_give_no_hole_that_is_none(seed: int) -> None:
    drawn = random.Random(seed)
    pending = tuple(
        PendingJob(str(number), drawn.randint(1, 3), drawn.randint(1, 10**5), float(drawn.randint(0, 10**6)))
        for number in range(1500)
    )
    queue = QueueState(now=0, processors=500, pending=pending)
    free = availability(queue)
    found = queue_picture("hpc", queue, {}).steps
    assert MOST_STEPS / 2 < len(found) <= MOST_STEPS < len(free.steps())
    ends = [step.time for step in found[1:]] + [math.inf]
    for step, end in zip(found, ends, strict=True):
        assert queue.processors - step.running - step.planned <= free.minimum(step.time, end)
