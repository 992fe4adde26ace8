"""How rarely a site is looked at while nothing happens there."""

from __future__ import annotations

import asyncio

import pytest

from adaptor.daemon.resting import goes_by_the_clock, look_after
from adaptor.daemon.step import step
from adaptor.model import PilotState
from tests.daemon.fake_site import FakeSite


@pytest.mark.parametrize(
    ("poll", "quiet", "pause"),
    [
        (15.0, 0.0, 15.0),
        (15.0, 120.0, 15.0),
        (15.0, 240.0, 30.0),
        (15.0, 480.0, 60.0),
        (15.0, 1e9, 60.0),
        (2.0, 1e9, 8.0),
        (30.0, 1e9, 60.0),
        (120.0, 1e9, 120.0),
    ],
)
def test_the_pause_grows_with_the_time_in_which_nothing_has_happened(
    poll: float, quiet: float, pause: float
) -> None:
    assert look_after(poll, quiet) == pause


def by_the_clock(site: FakeSite) -> bool:
    core = site.state.core
    return goes_by_the_clock(site.state.memory, core.broker, core.ledger, core.now())


def test_a_bag_that_waits_for_its_pilot_goes_by_no_clock(site: FakeSite) -> None:
    site.submit_bag(1)
    asyncio.run(step(site.state))
    assert site.states() == ["queued"]
    assert not by_the_clock(site)


@pytest.mark.parametrize("wish", [{"deadline": 1e9}, {"prefer": "cheap"}, {"budget": 10**9}])
def test_what_a_bag_pays_and_when_it_is_due_go_by_the_clock(site: FakeSite, wish: dict[str, object]) -> None:
    site.submit_bag(1, **wish)  # type: ignore[arg-type]
    assert by_the_clock(site)


@pytest.mark.parametrize(
    "unclear",
    [
        {"state": PilotState.RUNNING},
        {"leaving": "not needed"},
        {"misses": 1},
        {"never": "PartitionTimeLimit"},
        {"notes": {"": "its worker has not called"}},
        {"limited_since": 1.0},
    ],
)
def test_a_pilot_whose_next_answer_decides_is_looked_at(site: FakeSite, unclear: dict[str, object]) -> None:
    site.submit_bag(1)
    asyncio.run(step(site.state))
    (pilot,) = site.state.pilots.values()
    site.state.memory.change(pilot, **unclear)
    assert by_the_clock(site)


def test_a_scheduler_that_does_not_answer_is_asked_each_time(site: FakeSite) -> None:
    site.state.memory.problem = "no answer"
    assert by_the_clock(site)


def test_failures_are_tried_again_when_their_time_has_come(site: FakeSite) -> None:
    site.state.memory.refusals.failed(None, site.state.core.now(), "no more")
    assert by_the_clock(site)
