"""Advice is computed from what was measured, and claims only what the queue shows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.advice import SeenQueue, advise, round_size, round_time
from adaptor.api import MeasuredView
from adaptor.crafting.fits import tasks_on
from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits, PendingJob, QueueState
from adaptor.resources import Node, TaskSize

GIB, MIB = 2**30, 2**20
RULES = SiteRules(limits=Limits(max_pending_requests=4, max_proc=64, max_tr=86_400), pad=30.0)


def seen(**changes: Any) -> MeasuredView:
    fields: dict[str, Any] = {
        "task": TaskSize(), "sites": [], "done": 100, "wall": 4000.0, "longest": 55.0, "cpu": 3900.0,
        "memory": 600 * MIB, "first_tr": None, "paid": 4100.0, "used": 4000.0,
    }  # fmt: skip
    return MeasuredView(**(fields | changes))


def queue(*, nodes: int = 4) -> SeenQueue:
    node = [Node(name=f"n{number}", processors=16, memory=16 * GIB) for number in range(nodes)]
    return SeenQueue(RULES, QueueState(now=1e9, processors=16 * nodes, nodes=tuple(node)))


def test_memory_that_nobody_used_costs_slots() -> None:
    (told,) = advise(seen(task=TaskSize(memory=4 * GIB)), [queue()])
    assert told.startswith(
        "asked 4G of memory, used at most 600M: `--mem 768M` would have found 4 × as many free slots: "
        "64 instead of 16 (in the queue of "
    )


def test_where_memory_is_not_what_is_short_nothing_is_advised() -> None:
    assert advise(seen(task=TaskSize(memory=1 * GIB)), [queue()]) == []
    assert advise(seen(task=TaskSize(memory=600 * MIB)), []) == []


def test_without_a_queue_nothing_is_claimed_of_slots() -> None:
    (told,) = advise(seen(task=TaskSize(memory=4 * GIB)), [])
    assert told == "asked 4G of memory, used at most 600M: `--mem 768M` is enough"


def test_idle_processors_of_tasks() -> None:
    (told,) = advise(seen(task=TaskSize(processors=8), cpu=4400.0), [queue()])
    assert "asked 8 processors for each task, used 1.1 on average: `--cpus 2` would have found 4 ×" in told
    assert advise(seen(task=TaskSize(processors=2), cpu=7000.0), [queue()]) == []


def test_a_long_first_request_misses_holes() -> None:
    """In five minutes a job of others needs three of the four nodes."""
    other = PendingJob(id="other", processors=48, tr=7200.0, planned_start=1e9 + 300)
    waits = SeenQueue(RULES, QueueState(now=1e9, processors=64, pending=(other,)))
    (told,) = advise(seen(first_tr=3600.0), [waits])
    assert told.startswith(
        "tasks take 40s, at most 55s; as nothing was known of them, the first request asked"
    )
    assert "2m` would have found 4 × as many free slots: 64 instead of 16" in told
    assert advise(seen(first_tr=3600.0), [queue()]) == []
    assert advise(seen(first_tr=300.0), [waits]) == []


def test_short_tasks_whose_starts_cost_as_much() -> None:
    (told,) = advise(seen(wall=80.0, longest=1.0, paid=160.0, used=80.0), [queue()])
    assert told == (
        "tasks take 0.8s, and 50 % of the paid time passed outside of them:"
        " several commands in one task need fewer starts"
    )


@pytest.mark.parametrize("few", [0, 4])
def test_few_results_teach_nothing(few: int) -> None:
    assert advise(seen(done=few, task=TaskSize(memory=4 * GIB)), [queue()]) == []


@given(
    asked=st.integers(1, 16),
    processors=st.integers(1, 16),
    used=st.integers(1, 16 * GIB),
    nodes=st.integers(1, 6),
)
def test_what_is_claimed_fits_the_nodes(asked: int, processors: int, used: int, nodes: int) -> None:
    task = TaskSize(processors=processors, memory=asked * GIB)
    place = queue(nodes=nodes)
    expected = sum(tasks_on(node, task) for node in place.queue.nodes)
    assert place.startable(task, 60.0) == expected
    for line in advise(seen(task=task, memory=used, cpu=4000.0 * processors), [place]):
        assert "asked" in line
        assert round_size(used) <= asked * GIB


@given(st.integers(1, 10**12), st.floats(0.1, 1e6))
def test_what_is_advised_is_enough(size: int, seconds: float) -> None:
    assert size <= round_size(size) <= max(64 * MIB, 1.5 * size)
    assert seconds <= round_time(seconds) <= max(60.0, seconds + 900.0)
