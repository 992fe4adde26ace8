"""A long queue without compiled loops: starts are planned by processors alone, and it is said."""

from __future__ import annotations

import random
from statistics import median

import pytest

from adaptor.crafting.availability import Availability
from adaptor.crafting.nodes import schedule
from adaptor.crafting.nodes.schedule import why_by_processors
from adaptor.forecast.start_reasons import remarks
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Need, Node, Part

HOUR = 3600.0


def queue(nodes: int, jobs: int) -> QueueState:
    """Full nodes of 32 processors, and jobs of one to eight parts of nodes."""
    draw = random.Random(1)
    names = [f"n{number}" for number in range(nodes)]
    waiting = [(draw.choice([1, 1, 1, 2, 4, 8]), draw.choice([4, 8, 16, 32])) for _ in range(jobs)]
    return QueueState(
        now=0.0,
        processors=32 * nodes,
        nodes=tuple(Node(name=name, processors=32, memory=None) for name in names),
        running=tuple(
            RunningJob(f"r {name}", 32, draw.uniform(600, 24 * HOUR), parts=(Part(node=name, processors=32),))
            for name in names
        ),
        pending=tuple(
            PendingJob(
                f"p{number}",
                chunks * each,
                draw.choice([1, 4, 12, 24]) * HOUR,
                need=Need(chunks=chunks, processors=each),
            )
            for number, (chunks, each) in enumerate(waiting)
        ),
    )


def test_long_queues_are_planned_by_processors_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    long, short = queue(50, 600), queue(50, 300)
    exact = Availability(long).starts
    assert why_by_processors(long) == ""
    monkeypatch.setattr(schedule, "has_numba", lambda: False)
    assert why_by_processors(short) == ""
    told = why_by_processors(long)
    assert "planned by processors alone" in told
    assert "request-adaptor[compiled]" in told
    assert told in remarks(long, hidden=0, learned=100, at=None)
    starts = Availability(long).starts
    hours = [(exact[job] - starts[job]) / HOUR for job in exact]
    assert abs(median(hours)) < 0.5
    assert max(hours) < 24
