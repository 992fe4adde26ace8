"""The arithmetic of requests: processors, slots, rounds and times."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.fits import RequestShape, rounds_within
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import FreeSlot, Limits, QueueState, Request
from adaptor.resources import TaskSize


def shape(
    *,
    max_proc: int = 16,
    max_tr: int = 3600,
    granularity: int = 1,
    resolution: int = 60,
    margin: int = 0,
    shrink_margin: int | None = None,
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
            shrink_margin=shrink_margin,
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


def test_where_requests_shrink_the_whole_slot_is_asked_for_if_it_surely_holds_a_task() -> None:
    cut = shape(margin=100, shrink_margin=0, runtime=300)
    assert cut.longest_tr(840) == 840
    assert cut.longest_tr(460) == 420
    assert cut.longest_tr(459) == 300, "a task needs 360 s, and only 359 s are sure"
    assert cut.longest_tr(459, least=240) == 420, "the least that is of use is what the caller says"
    assert shape(margin=100, shrink_margin=60, runtime=300).longest_tr(840) == 780


def test_a_request_for_now_takes_what_a_task_needs_and_one_that_waits_no_less_than_it_was_promised() -> None:
    cut = shape(margin=100, shrink_margin=0, runtime=300)
    now, later = FreeSlot(1000.0, 1230.0, 8), FreeSlot(1001.0, 1230.0, 8)
    assert cut.request(8, 1200, cut.least_in(now, 1000.0)) == Request(8, 1200, 360)
    assert cut.request(8, 1200, cut.least_in(later, 1000.0)) == Request(8, 1200, 1080)
    for_ever = msgspec.structs.replace(later, duration=math.inf)
    assert cut.request(8, 1200, cut.least_in(for_ever, 1000.0)) == Request(8, 1200), "nothing cuts it"
    assert shape(margin=100).request(8, 1200, 360) == Request(8, 1200), "the scheduler does not do that"


@given(
    duration=st.one_of(st.integers(0, 9000), st.floats(0, 9000), st.just(math.inf)),
    runtime=st.floats(1, 5000),
    max_tr=st.integers(1, 8000),
    margin=st.integers(0, 200),
    shrinks=st.integers(0, 200),
    resolution=st.sampled_from([1, 60]),
    waits=st.booleans(),
)
def test_a_request_that_may_shrink_fits_and_loses_nothing(
    duration: float, runtime: float, max_tr: int, margin: int, shrinks: int, resolution: int, waits: bool
) -> None:
    terms = {"margin": margin, "runtime": runtime, "max_tr": max_tr, "resolution": resolution}
    plain, cut = shape(**terms), shape(**terms, shrink_margin=min(shrinks, margin))
    assert cut.longest_tr(duration) >= plain.longest_tr(duration)
    assert cut.rounds(cut.longest_tr(duration)) >= plain.rounds(plain.longest_tr(duration))
    assert (cut.longest_tr(duration) >= cut.enough()) == (plain.longest_tr(duration) >= plain.enough())
    tr = cut.longest_tr(duration)
    if tr >= cut.enough():
        request = cut.request(1, tr, cut.least_in(FreeSlot(float(waits), duration, 1), 0.0))
        surely = tr if request.least is None else request.least
        assert surely <= max(plain.longest_tr(duration), 0), "it starts where the plain request does"
        assert cut.enough() <= surely <= request.tr


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
