"""The holes of a queue as they are shown."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given

from adaptor.api import FreeStep, GpuTotals, SlotView
from adaptor.config.schema import SiteConfig
from adaptor.crafting.availability import availability
from adaptor.crafting.situation import SiteRules
from adaptor.daemon.slots_view import read_site, slots_view
from adaptor.model import EndedJob, Limits, PendingJob, QueueState, RunningJob
from adaptor.resources import Node, Part, TaskSize
from backends.base import SchedulerError
from tests.alike import alike
from tests.crafting.crafting_strategies import queues, rules
from tests.daemon.fake_site import FakeBackend

RULES = SiteRules(
    limits=Limits(max_pending_requests=3, max_proc=48, max_tr=7200),
    time_resolution=60,
    slot_margin=72,
    pad=30,
)


def queue(*running: RunningJob, pending: tuple[PendingJob, ...] = ()) -> QueueState:
    return QueueState(now=1000, processors=64, running=running, pending=pending)


def test_every_hole_with_the_largest_request_that_takes_it() -> None:
    """48 processors are free for 20 minutes; a job that wants all is planned then, for an hour."""
    seen = queue(RunningJob("a", 16, 2200), pending=(PendingJob("b", 64, 3600, 2200),))
    view = slots_view("hpc", seen, RULES)
    assert view.free == [FreeStep(1000, 48), FreeStep(2200, 0), FreeStep(5800, 64)]
    assert view.slots == [
        SlotView(start=1000, end=2200, processors=48, p=48, tr=1080),
        SlotView(start=5800, end=None, processors=64, p=48, tr=7200),
    ]


def test_a_hole_too_short_for_any_request() -> None:
    seen = queue(pending=(PendingJob("b", 64, math.inf, 1100),))
    assert slots_view("hpc", seen, RULES).slots == [
        SlotView(start=1000, end=1100, processors=64, p=None, tr=None)
    ]


def test_processors_that_move_from_node_to_node_are_no_slot() -> None:
    """At each instant four are free, and on neither node for ever."""
    held = RunningJob("a", 4, 2000, (Part(node="n1", processors=4),))
    then = PendingJob("b", 4, math.inf, 2000, (Part(node="n2", processors=4),))
    seen = QueueState(now=1000, processors=8, running=(held,), pending=(then,), nodes=alike(2, 4))
    view = slots_view("hpc", seen, RULES)
    assert [(step.time, step.processors) for step in view.free] == [(1000, 4)]
    assert [(slot.start, slot.end, slot.processors) for slot in view.slots] == [
        (1000, 2000, 4),
        (2000, None, 4),
    ]


def test_slots_for_tasks_of_a_size_and_the_gpus_that_are_free() -> None:
    nodes = (
        Node(name="n1", processors=32, gpus=(("a100", 4),)),
        Node(name="n2", processors=32, gpus=(("", 2),)),
        Node(name="n3", processors=8, gpus=(("a100", 8),), in_service=False),
        Node(name="n4", processors=8, gpus=(("a100", 8),), ours=False),
    )
    parts = (
        Part(node="n1", processors=16, gpus=(("a100", 3),)),
        Part(node="n4", processors=1, gpus=(("a100", 1),)),
    )
    seen = msgspec.structs.replace(queue(RunningJob("a", 16, math.inf, parts)), nodes=nodes)
    view = slots_view("hpc", seen, RULES, TaskSize(processors=5))
    assert view.gpus == [GpuTotals(type="", total=2, free=2), GpuTotals(type="a100", total=4, free=1)]
    assert [(slot.p, slot.tasks) for slot in view.slots] == [(45, 9)]
    assert view.no_room == ""
    assert "the largest node has 32" in slots_view("hpc", seen, RULES, TaskSize(processors=64)).no_room


def test_a_full_site_has_no_slot() -> None:
    assert slots_view("hpc", queue(RunningJob("a", 64, math.inf)), RULES).slots == []


@given(queues(planned=True), rules())
def test_each_request_fits_into_the_profile_and_none_is_above_the_limits(
    seen: QueueState, site_rules: SiteRules
) -> None:
    profile = availability(seen)
    for slot in slots_view("x", seen, site_rules).slots:
        if slot.p is not None and slot.tr is not None:
            assert profile.minimum(slot.start, slot.start + slot.tr) >= slot.p
            assert slot.p <= site_rules.limits.max_proc
            assert slot.tr <= site_rules.limits.max_tr


def test_a_scheduler_that_hangs_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every question to it takes the whole `command_timeout`."""
    asked = []

    class Hung(FakeBackend):
        def queue_state(self) -> QueueState:
            asked.append("queue")
            raise SchedulerError("qstat did not answer within 30s")

        def ended_jobs(self) -> list[EndedJob]:
            return []

        def advertised_limits(self) -> Limits:
            asked.append("limits")
            raise SchedulerError("qstat did not answer within 30s")

    monkeypatch.setenv("ADAPTOR_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    monkeypatch.setattr("adaptor.daemon.slots_view.make_backend", lambda *_: Hung())
    (found,) = read_site("hpc", SiteConfig(backend="pbs"))
    assert "did not answer" in found.problem
    assert asked == ["queue"]
