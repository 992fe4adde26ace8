"""Past waits of like jobs, and how much they count beside the plan."""

from __future__ import annotations

import math

import pytest

from adaptor.forecast import past_waits
from adaptor.forecast.past_waits import FEWEST, KEPT, PastWait, PastWaits, Waiting, mixed, ratio, weight_of
from adaptor.model import Estimate


def waits(job: Waiting, *seconds: float) -> list[PastWait]:
    return [PastWait(job, each) for each in seconds]


WIDE, NARROW = Waiting(512, 86_400.0, owner="a"), Waiting(1, 3600.0, owner="b")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_waits, "NEAREST", 40)


def test_the_nearest_jobs_say_how_long() -> None:
    known = PastWaits([*waits(WIDE, *[36_000.0] * 40), *waits(NARROW, *range(0, 400, 10))])
    assert known.like(WIDE) == Estimate(36_000.0, 36_000.0, 36_000.0)
    assert known.like(NARROW) == Estimate(10.0, 190.0, 370.0)
    assert known.like(Waiting(256, 40_000.0)) == known.like(WIDE), "of another user too"


def test_too_few_say_nothing() -> None:
    assert PastWaits(waits(NARROW, *[5.0] * (FEWEST - 1))).like(NARROW) is None
    assert PastWaits(waits(NARROW, *[5.0] * FEWEST)).like(NARROW) is not None


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
    found, its = known.like(NARROW), known.like(other)
    assert found is not None
    assert its is not None
    assert (found.value, its.value) == (5.0, 9000.0)


def test_of_equal_ones_the_newest_count_and_old_ones_are_forgotten() -> None:
    known = PastWaits([*waits(NARROW, *[5.0] * KEPT), *waits(NARROW, *[700.0] * 40)])
    assert len(known) == KEPT
    assert known.like(NARROW) == Estimate(700.0, 700.0, 700.0)


def test_limits_without_an_end_are_compared_too() -> None:
    assert PastWaits(waits(Waiting(1, math.inf), *[5.0] * 50)).like(Waiting(1, math.inf)) is not None


def test_what_came_nearer_so_far_counts() -> None:
    assert weight_of([(0.0, 1.0)] * 50) == 0.0
    assert weight_of([(1.0, 0.0)] * 50) == 1.0
    assert weight_of([(1.0, -1.0)] * 50) == 0.5, "errors on both sides cancel out"
    assert weight_of([(1.0, 0.0)] * (FEWEST - 1)) == 0.0, "too little is known"


def test_ratios_do_not_tell_short_waits_apart() -> None:
    assert ratio(6000.0, 600.0) == pytest.approx(1.0)
    assert ratio(0.0, 59.0) == 0.0


def test_a_mixture_lies_between_on_the_logarithmic_scale() -> None:
    plan, past = Estimate(0.0, 0.0, math.inf), Estimate(40.0, 5940.0, 9000.0)
    assert mixed(plan, past, 0.0) == mixed(plan, None, 1.0) == plan
    half = mixed(plan, past, 0.5)
    assert half.value == pytest.approx(math.sqrt(60 * 6000) - 60)
    assert half.high == math.inf
    whole = mixed(Estimate(0.0, 0.0, 0.0), past, 1.0)
    assert (whole.low, whole.value) == (pytest.approx(40.0), pytest.approx(5940.0))
