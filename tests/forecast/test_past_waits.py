"""Past waits of like jobs, and how much they count beside the plan."""

from __future__ import annotations

import math

import pytest

from adaptor.forecast import past_waits
from adaptor.forecast.past_waits import (
    FEWEST,
    KEPT,
    PLAN_ALONE,
    WEIGHTS,
    ByPast,
    PastWait,
    PastWaits,
    Waiting,
    mixed,
    ratio,
    weights_of,
)
from adaptor.model import Estimate


def waits(job: Waiting, *seconds: float) -> list[PastWait]:
    return [PastWait(job, each) for each in seconds]


def like(known: PastWaits, job: Waiting) -> Estimate | None:
    found = known.of(job)
    return None if found is None else found.like


WIDE, NARROW = Waiting(512, 86_400.0, owner="a"), Waiting(1, 3600.0, owner="b")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_waits, "NEAREST", 40)


def test_the_nearest_jobs_say_how_long() -> None:
    known = PastWaits([*waits(WIDE, *[36_000.0] * 40), *waits(NARROW, *range(0, 400, 10))])
    assert like(known, WIDE) == Estimate(36_000.0, 36_000.0, 36_000.0)
    assert like(known, NARROW) == Estimate(10.0, 190.0, 370.0)
    assert like(known, Waiting(256, 40_000.0)) == like(known, WIDE), "of another user too"


def test_too_few_say_nothing() -> None:
    assert PastWaits(waits(NARROW, *[5.0] * (FEWEST - 1))).of(NARROW) is None
    assert PastWaits(waits(NARROW, *[5.0] * FEWEST)).of(NARROW) is not None


@pytest.mark.parametrize(
    "other",
    [
        Waiting(1, 3600.0, owner="c"),
        Waiting(1, 3600.0, owner="b", ahead=50),
        Waiting(1, 3600.0, owner="b", waited=90_000.0),
        Waiting(1, 3600.0, True, "b"),
        Waiting(8, 3600.0, owner="b"),
        Waiting(1, 36_000.0, owner="b"),
    ],
)
def test_users_jobs_in_front_time_waited_and_shape_part_them(other: Waiting) -> None:
    known = PastWaits([*waits(other, *[9000.0] * 40), *waits(NARROW, *[5.0] * 40)])
    found, its = like(known, NARROW), like(known, other)
    assert found is not None
    assert its is not None
    assert (found.value, its.value) == (5.0, 9000.0)


def test_of_equal_ones_the_newest_count_and_old_ones_are_forgotten() -> None:
    known = PastWaits([*waits(NARROW, *[5.0] * KEPT), *waits(NARROW, *[700.0] * 40)])
    assert len(known) == KEPT
    assert like(known, NARROW) == Estimate(700.0, 700.0, 700.0)


def test_limits_without_an_end_are_compared_too() -> None:
    assert PastWaits(waits(Waiting(1, math.inf), *[5.0] * 50)).of(Waiting(1, math.inf)) is not None


def test_of_its_shape_are_those_of_as_many_processors_and_as_long() -> None:
    known = PastWaits([*waits(WIDE, *[36_000.0] * 40), *waits(NARROW, *[5.0] * 40)])
    found = known.of(Waiting(600, 90_000.0, owner="b"))
    assert found is not None
    assert found.shape == Estimate(36_000.0, 36_000.0, 36_000.0)


def test_what_came_nearer_so_far_counts() -> None:
    assert weights_of([(0.0, 1.0, 1.0)] * 50) == PLAN_ALONE == (1.0, 0.0, 0.0)
    assert weights_of([(1.0, 0.0, 1.0)] * 50) == (0.0, 1.0, 0.0)
    assert weights_of([(1.0, 1.0, 0.0)] * 50) == (0.0, 0.0, 1.0)
    assert weights_of([(1.0, -1.0, 5.0)] * 50) == (0.5, 0.5, 0.0), "errors on both sides cancel out"
    assert weights_of([(1.0, 0.0, 0.0)] * (FEWEST - 1)) == PLAN_ALONE, "too little is known"
    assert weights_of([], WEIGHTS[-1:]) == (0.0, 0.0, 1.0)


def test_weights_are_all_quarters() -> None:
    assert len(set(WEIGHTS)) == 15
    assert {sum(each) for each in WEIGHTS} == {1.0}


def test_ratios_do_not_tell_short_waits_apart() -> None:
    assert ratio(6000.0, 600.0) == pytest.approx(1.0)
    assert ratio(0.0, 59.0) == 0.0


def test_a_mixture_lies_between_on_the_logarithmic_scale() -> None:
    like, shape = Estimate(40.0, 5940.0, 9000.0), Estimate(1.0, 2.0, 3.0)
    plan, past = Estimate(0.0, 0.0, math.inf), ByPast(like, shape)
    assert mixed(plan, past, PLAN_ALONE) == mixed(plan, None, (0.0, 1.0, 0.0)) == plan
    half = mixed(plan, past, (0.5, 0.5, 0.0))
    assert half.value == pytest.approx(math.sqrt(60 * 6000) - 60)
    assert half.high == math.inf
    whole = mixed(plan, past, (0.0, 0.0, 1.0))
    assert (whole.low, whole.value, whole.high) == pytest.approx((1.0, 2.0, 3.0)), (
        "an end that counts nothing"
    )
