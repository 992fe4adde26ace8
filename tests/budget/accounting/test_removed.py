"""Pilots of sites that left the configuration: when they have certainly ended, and what is charged."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.removed import RemovedPilot

PILOT = RemovedPilot(
    id=1,
    site="gone",
    tag="adaptor-x.hpc.1",
    job="7",
    tr=600,
    grace=60,
    reserved=1,
    submitted=900.0,
    started=1000.0,
    last_sign=None,
    noticed=1100.0,
)
LATER = 10_000.0


def seen(**changes: float | None) -> RemovedPilot:
    return msgspec.structs.replace(PILOT, **changes)


def test_what_never_started_costs_nothing_and_is_waited_for_from_when_its_site_was_gone() -> None:
    queued = seen(started=None)
    assert queued.end(None, LATER) is None
    assert queued.end(1500.0, LATER) is None
    assert queued.due == 1100 + 600 + 60


def test_what_started_is_charged_to_its_last_sign_of_life() -> None:
    assert seen(last_sign=1300.0).end(None, LATER) == 1300
    assert PILOT.due == 1000 + 600 + 60


def test_without_a_sign_it_is_charged_for_its_time_and_without_an_end_until_now() -> None:
    assert PILOT.end(None, LATER) == 1600
    assert PILOT.end(None, 1250.0) == 1250


def test_its_user_knows_better() -> None:
    assert seen(last_sign=1300.0).end(1200.0, LATER) == 1200
    assert seen(last_sign=1300.0).end(9000.0, LATER) == 1660, "its scheduler lets none run longer"
    assert PILOT.end(500.0, LATER) == 1000


times = st.floats(0, 5000)


@given(times, st.none() | times, st.none() | times, times)
def test_no_pilot_is_charged_beyond_its_reservation(
    started: float, last_sign: float | None, told: float | None, now: float
) -> None:
    pilot = seen(started=started, last_sign=last_sign)
    end = pilot.end(told, now)
    assert end is not None
    assert started <= end <= started + pilot.tr + pilot.grace
    assert end <= max(now, started)
