"""Algorithm 1."""

from __future__ import annotations

import math

from hypothesis import given

from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.places import CraftingSituation
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.crafting.static import static
from adaptor.model import Limits, QueueState, Request
from adaptor.resources import TaskSize

from .crafting_strategies import situations


def situation(
    tasks: int, *, requests: int = 3, in_system: int = 0, max_proc: int = 64, per_task: int = 1,
    granularity: int = 1, site: int = 1000, runtime: float = 600,
) -> CraftingSituation:  # fmt: skip
    limits = Limits(max_pending_requests=requests, max_proc=max_proc, max_tr=3600)
    rules = SiteRules(limits=limits, pad=30, granularity=granularity, time_resolution=60)
    queue = QueueState(now=0, processors=site)
    demand = Demand(runtime=runtime, task=TaskSize(processors=per_task))
    return CraftingSituation(
        free=Availability(queue),
        shape=RequestShape.for_demand(rules, queue, demand),
        allowed_requests=max(0, requests - in_system),
        remaining_tasks=tasks,
    )


def shapes(given: CraftingSituation) -> list[Request]:
    return [each.request for each in static(given)]


def test_the_tasks_are_divided_by_the_allowed_requests_and_rounded_up() -> None:
    assert shapes(situation(100)) == [Request(34, 3600)] * 3


def test_requests_in_the_system_are_not_allowed_again() -> None:
    assert shapes(situation(100, in_system=1)) == [Request(50, 3600)] * 2
    assert shapes(situation(100, in_system=3)) == []
    assert shapes(situation(100, in_system=4)) == []


def test_no_request_is_wider_than_allowed() -> None:
    assert shapes(situation(1000)) == [Request(64, 3600)] * 3
    assert shapes(situation(1000, site=48)) == [Request(48, 3600)] * 3


def test_no_request_is_left_without_a_task() -> None:
    assert shapes(situation(2)) == [Request(1, 3600)] * 2
    assert shapes(situation(4)) == [Request(2, 3600)] * 2
    assert shapes(situation(0)) == []


def test_a_task_of_several_processors() -> None:
    assert shapes(situation(8, per_task=4)) == [Request(12, 3600)] * 3
    assert shapes(situation(100, per_task=5)) == [Request(60, 3600)] * 3
    assert shapes(situation(100, per_task=65)) == []


def test_whole_nodes() -> None:
    assert shapes(situation(30, granularity=16)) == [Request(16, 3600)] * 2
    assert shapes(situation(300, granularity=48)) == [Request(48, 3600)] * 3


def test_it_says_what_it_expects_and_why() -> None:
    crafted = static(situation(100, runtime=1000))
    assert [each.tasks for each in crafted] == [34, 33, 33]
    assert {each.predicted_start for each in crafted} == {None}
    assert crafted[0].reason == (
        "asks 34 × 1h: 100 remaining tasks over 3 allowed requests, "
        "each of the longest time allowed and of at most 64 processors"
    )


@given(situations())
def test_the_formula_of_the_paper(given: CraftingSituation) -> None:
    crafted = static(given)
    limits, shape = given.shape.rules.limits, given.shape
    assert len(crafted) <= min(given.allowed_requests, given.remaining_tasks)
    assert bool(crafted) == bool(given.allowed_requests and given.remaining_tasks and shape.widest)
    for each in crafted:
        assert each.request.tr == limits.max_tr
        assert each.request.p <= min(limits.max_proc, given.queue.processors)
        assert each.tasks >= 1
        if shape.task.processors == shape.rules.granularity == 1:
            share = math.ceil(given.remaining_tasks / given.allowed_requests)
            assert each.request.p == min(limits.max_proc, given.queue.processors, share)
    assert sum(each.tasks for each in crafted) <= given.remaining_tasks
