"""The arithmetic of requests: processors, slots, rounds and times."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.fits import RequestShape, rounds_within
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import Limits, QueueState
from adaptor.resources import TaskSize


def shape(
    *,
    max_proc: int = 16,
    max_tr: int = 3600,
    granularity: int = 1,
    resolution: int = 60,
    margin: int = 0,
    pad: float = 30,
    per_task: int = 1,
    runtime: float = 60,
    site: int = 64,
) -> RequestShape:
    return RequestShape.for_demand(
        SiteRules(
            limits=Limits(max_pending_requests=3, max_proc=max_proc, max_tr=max_tr),
            time_resolution=resolution,
            slot_margin=margin,
            pad=pad,
            granularity=granularity,
        ),
        QueueState(now=0.0, processors=site),
        Demand(task=TaskSize(processors=per_task), runtime=runtime),
    )


@pytest.mark.parametrize(
    ("processors", "per_task", "granularity", "slots"),
    [(7, 1, 1, 7), (7, 2, 1, 3), (7, 8, 1, 0), (32, 3, 16, 10), (16, 16, 16, 1), (64, 32, 16, 2)],
)
def test_a_task_never_spans_two_whole_nodes(
    processors: int, per_task: int, granularity: int, slots: int
) -> None:
    assert shape(per_task=per_task, granularity=granularity).slots(processors) == slots


def test_p_is_whole_tasks_and_whole_nodes() -> None:
    assert shape(max_proc=15, per_task=4).widest == 12
    assert shape(max_proc=40, granularity=16, per_task=4).widest == 32
    assert shape(max_proc=15, granularity=16).widest == 0
    assert shape(max_proc=3, per_task=4).widest == 0


def test_p_is_no_larger_than_the_site() -> None:
    assert shape(max_proc=16, site=10, per_task=4).widest == 8


def test_the_processors_for_some_tasks_are_rounded_up() -> None:
    assert shape(per_task=4).processors_for(3) == 12
    assert shape(granularity=16, per_task=4).processors_for(3) == 16
    assert shape(granularity=16, per_task=4).processors_for(5) == 32


def test_rounds_fit_beside_the_pad() -> None:
    assert rounds_within(630, 60, 30) == 10
    assert rounds_within(629, 60, 30) == 9
    assert rounds_within(20, 60, 30) == 0


def test_floating_point_does_not_cost_a_round() -> None:
    assert rounds_within(0.3, 0.1, 0) == 3
    assert rounds_within(3600, 3600 - 30.1, 30.1) == 1


def test_a_request_is_shorter_than_its_slot_by_the_margin_and_in_whole_minutes() -> None:
    assert shape(margin=30).longest_tr(840) == 780
    assert shape(margin=0).longest_tr(840) == 840
    assert shape(margin=60).longest_tr(59) == 0


def test_a_request_is_never_longer_than_allowed() -> None:
    assert shape(max_tr=100).longest_tr(math.inf) == 100
    assert shape(max_tr=100).longest_tr(119) == 60
    assert shape(max_tr=100).tr_for(1, 100) == 100


@given(st.integers(1, 200), st.floats(0.1, 1000), st.floats(0, 60), st.sampled_from([1, 60]))
def test_the_tr_for_some_rounds_holds_them(rounds: int, runtime: float, pad: float, resolution: int) -> None:
    requests = shape(runtime=runtime, pad=pad, resolution=resolution, max_tr=10**9)
    tr = requests.tr_for(rounds, 10**9)
    assert requests.rounds(tr) >= rounds
    assert tr % resolution == 0
    assert tr < rounds * runtime + pad + resolution
