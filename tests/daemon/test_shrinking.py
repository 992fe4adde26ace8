"""A request that its scheduler may start with less than its tr: what it got is observed and written down."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.crafting.situation import Demand, Reshape
from adaptor.daemon.step import drive, step_of
from adaptor.decisions.pilots import Pilot
from adaptor.journal.pilot_rows import pilots_in_system
from adaptor.model import CraftedRequest, Request
from adaptor.reports import JobState
from adaptor.units import format_duration
from backends.base import ChangeRefused
from tests.daemon.budgeted_site import in_every_past, steps, submit_budgeted
from tests.daemon.fake_site import FakeSite


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    site = FakeSite(tmp_path / "state")
    yield site
    in_every_past(site)
    site.journal.close()


@pytest.fixture
def pilot(site: FakeSite) -> Pilot:
    """It waits for 2 processors, for 10 to 50 minutes."""
    submit_budgeted(site, tasks=500, credits=1000.0)
    site.backend.shrink_margin = 0
    steps(site)
    (pilot, *_) = site.state.pilots.values()
    crafted = CraftedRequest(Request(2, 3000, 600), None, 3, "asks for a hole")
    site.backend.asks_for(pilot.tag, pilot.request)
    asyncio.run(
        drive(
            site.state,
            step_of(site.state).act(
                [Reshape(pilot.id, crafted, Demand(waiting=3, runtime=60.0, bag=pilot.bag))]
            ),
        )
    )
    return site.state.pilots[pilot.id]


@pytest.mark.parametrize("got", [600, 1234, 3000])
def test_what_a_request_got_when_it_started_is_its_tr_its_charge_and_told(
    site: FakeSite, pilot: Pilot, got: int
) -> None:
    site.backend.say(pilot.tag, JobState.RUNNING)
    site.backend.asks_for(pilot.tag, Request(pilot.request.p, got))
    steps(site)
    for _ in range(2):
        known = site.state.pilots[pilot.id]
        reserved = site.state.core.treasury.ledger.open_pilots[pilot.id]
        row = next(row for row in site.journal.read(pilots_in_system) if row.id == pilot.id)
        assert (known.request.tr, known.granted, reserved.tr, row.tr) == (got, got, got, got)
        assert known.started is not None
        assert known.ends == known.started + got
        site.restart()
    told = [text for text in site.told("state") if text.startswith("started with")]
    words = f"started with {format_duration(got)}: the free slot held that much of 2 × 10m to 50m"
    assert told == ([words] if got < 3000 else [])


def test_a_least_time_outlives_the_daemon(site: FakeSite, pilot: Pilot) -> None:
    assert pilot.request == Request(2, 3000, 600)
    site.restart()
    assert site.state.pilots[pilot.id].request == Request(pilot.request.p, 3000, 600)


def test_a_request_that_started_shorter_while_a_change_of_it_was_under_way(
    site: FakeSite, pilot: Pilot
) -> None:
    """The scheduler refuses the change; what it gave is what is charged."""
    site.backend.on_reshape = ChangeRefused("Job is no longer pending execution")
    site.backend.say(pilot.tag, JobState.RUNNING)
    site.backend.asks_for(pilot.tag, Request(pilot.request.p, 900))
    crafted = CraftedRequest(Request(1, 3600, 1200), None, 3, "asks for more")
    change = Reshape(pilot.id, crafted, Demand(waiting=3, runtime=60.0, bag=pilot.bag))
    asyncio.run(drive(site.state, step_of(site.state).act([change])))
    assert site.backend.changed[-1].request.least == 1200
    steps(site)
    reserved = site.state.core.treasury.ledger.open_pilots[pilot.id]
    known = site.state.pilots[pilot.id]
    assert (reserved.p, reserved.tr) == (known.request.p, known.request.tr) == (pilot.request.p, 900)
