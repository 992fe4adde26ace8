"""A queued request is changed in its place or starts with less: what is asked, true and charged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from adaptor.crafting.situation import Demand, Reshape
from adaptor.daemon.step import drive, step_of
from adaptor.decisions.pilots import Pilot
from adaptor.journal.pilot_rows import pilots_in_system
from adaptor.model import CraftedRequest, PilotState, Request
from adaptor.reports import JobState
from adaptor.units import format_duration
from backends.base import ChangeRefused, SchedulerError
from tests.daemon.budgeted_site import in_every_past, steps, submit_budgeted
from tests.daemon.fake_site import FakeSite


class Killed(BaseException):
    """The daemon dies here."""


@pytest.fixture
def site(site: FakeSite) -> Iterator[FakeSite]:
    yield site
    in_every_past(site)


@pytest.fixture
def pilot(site: FakeSite) -> Pilot:
    """A queued pilot of 2 processors for a bag with a budget; its number is 1."""
    submit_budgeted(site, tasks=200, credits=20.0)
    steps(site)
    return site.state.pilots[1]


def reshape(site: FakeSite, p: int, tr: int) -> None:
    """Carry out the decision to change pilot 1."""
    bag = site.state.pilots[1].bag
    crafted = CraftedRequest(Request(p, tr), None, 3, f"asks {p} × {tr}")
    assert bag is not None
    demand = Demand(waiting=3, runtime=60.0, bag=bag, payers={bag: 1.0})
    action = Reshape(1, crafted, demand)
    asyncio.run(drive(site.state, step_of(site.state).act([action])))


def known(site: FakeSite) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """What pilot 1 asks for in memory, in the journal and in the ledger."""
    pilot = site.state.pilots[1]
    row = site.journal.connection.execute("SELECT p, tr FROM pilot WHERE id = 1").fetchone()
    held = site.state.core.treasury.ledger.open_pilots[1]
    return (pilot.request.p, pilot.request.tr), row, (held.p, held.tr)


@pytest.mark.parametrize(("p", "tr"), [(1, 600), (1, 3000), (2, 300), (1, 60)])
def test_a_change_that_is_taken_is_written_down_everywhere(
    site: FakeSite, pilot: Pilot, p: int, tr: int
) -> None:
    submitted, orders = pilot.submitted, len(site.backend.orders)
    reshape(site, p, tr)
    assert known(site) == ((p, tr),) * 3
    pilot = site.state.pilots[1]
    assert (pilot.submitted, pilot.state, len(site.backend.orders)) == (submitted, PilotState.QUEUED, orders)
    assert [order.request for order in site.backend.changed] == [Request(p, tr)]
    assert site.told("reshaped") == [f"asks {p} × {tr}"]
    site.restart()
    assert known(site) == ((p, tr),) * 3


def test_what_has_started_meanwhile_keeps_its_request(site: FakeSite, pilot: Pilot) -> None:
    before = pilot.request.p, pilot.request.tr
    site.backend.asks_for(pilot.tag, pilot.request)
    site.backend.on_reshape = ChangeRefused("Job is no longer pending execution")
    reshape(site, 1, 3600)
    site.backend.on_reshape = None
    site.backend.say(pilot.tag, JobState.RUNNING)
    site.backend.asks_for(pilot.tag, Request(*before))
    steps(site)
    pilot = site.state.pilots[1]
    assert (known(site), pilot.state) == ((before,) * 3, PilotState.RUNNING)
    assert "no longer pending" in site.told("problem")[-1]
    assert pilot.fixed, "the scheduler is not asked for another change of it"


def test_a_pilot_that_is_known_to_run_is_not_asked_about(site: FakeSite, pilot: Pilot) -> None:
    site.backend.say(pilot.tag, JobState.RUNNING)
    steps(site)
    reshape(site, 1, 60)
    assert site.backend.changed == []


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize(("p", "tr"), [(1, 60), (2, 300), (1, 3600)])
def test_the_truth_of_a_change_without_an_answer_is_what_the_scheduler_shows(
    site: FakeSite, pilot: Pilot, taken: bool, p: int, tr: int
) -> None:
    before = pilot.request
    site.backend.asks_for(pilot.tag, before)
    site.backend.on_reshape, site.backend.takes_it_all_the_same = SchedulerError("timed out"), taken
    reshape(site, p, tr)
    held = site.state.core.treasury.ledger.open_pilots[1]
    assert held.p * held.tr >= max(p * tr, before.p * before.tr), "the larger is set aside meanwhile"
    steps(site)
    now = Request(p, tr) if taken else before
    assert known(site) == ((now.p, now.tr),) * 3
    assert not site.state.pilots[1].fixed


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING])
@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize(("p", "tr"), [(1, 60), (2, 300), (1, 3600), (2, 1200)])
def test_killed_between_the_change_and_its_answer(
    site: FakeSite, pilot: Pilot, state: JobState, taken: bool, p: int, tr: int
) -> None:
    reshape(site, 1, 1200)
    tag, before = pilot.tag, Request(1, 1200)
    site.backend.on_reshape, site.backend.takes_it_all_the_same = Killed(), taken
    with pytest.raises(Killed):
        reshape(site, p, tr)
    asked = Request(p, tr) if taken else before
    site.backend.on_reshape = None
    site.backend.say(tag, state)
    site.backend.asks_for(tag, asked)
    site.backend.reports[tag] = msgspec.structs.replace(
        site.backend.reports[tag], granted=None if state is JobState.QUEUED else float(asked.tr)
    )
    site.restart()
    steps(site)
    assert known(site) == ((asked.p, asked.tr),) * 3
    assert site.state.pilots[1].granted == asked.tr


def test_more_processors_of_a_running_job_are_no_change(site: FakeSite, pilot: Pilot) -> None:
    """Where two threads share a core, Slurm gives four processors to a request for three."""
    before = pilot.request
    site.backend.say(pilot.tag, JobState.RUNNING)
    site.backend.asks_for(pilot.tag, Request(before.p + 1, before.tr))
    steps(site)
    assert known(site) == ((before.p, before.tr),) * 3


def test_what_no_budget_holds_is_not_asked(site: FakeSite) -> None:
    submit_budgeted(site, tasks=200, credits=0.6)
    steps(site)
    before = known(site)
    reshape(site, 20, 3600)
    assert (known(site), site.backend.changed) == (before, [])
    assert "has" in site.told("withheld")[-1]


@pytest.fixture
def shrinkable(site: FakeSite) -> Pilot:
    """It waits for 2 processors, for 10 to 50 minutes."""
    submit_budgeted(site, tasks=500, credits=1000.0)
    site.backend.shrink_margin = 0
    steps(site)
    (shrinkable, *_) = site.state.pilots.values()
    crafted = CraftedRequest(Request(2, 3000, 600), None, 3, "asks for a hole")
    site.backend.asks_for(shrinkable.tag, shrinkable.request)
    asyncio.run(
        drive(
            site.state,
            step_of(site.state).act(
                [Reshape(shrinkable.id, crafted, Demand(waiting=3, runtime=60.0, bag=shrinkable.bag))]
            ),
        )
    )
    return site.state.pilots[shrinkable.id]


@pytest.mark.parametrize("got", [600, 1234, 3000])
def test_what_a_request_got_when_it_started_is_its_tr_its_charge_and_told(
    site: FakeSite, shrinkable: Pilot, got: int
) -> None:
    site.backend.say(shrinkable.tag, JobState.RUNNING)
    site.backend.asks_for(shrinkable.tag, Request(shrinkable.request.p, got))
    steps(site)
    for _ in range(2):
        known = site.state.pilots[shrinkable.id]
        reserved = site.state.core.treasury.ledger.open_pilots[shrinkable.id]
        row = next(row for row in site.journal.read(pilots_in_system) if row.id == shrinkable.id)
        assert (known.request.tr, known.granted, reserved.tr, row.tr) == (got, got, got, got)
        assert known.started is not None
        assert known.ends == known.started + got
        site.restart()
    told = [text for text in site.told("state") if text.startswith("started with")]
    words = f"started with {format_duration(got)}: the free slot held that much of 2 × 10m to 50m"
    assert told == ([words] if got < 3000 else [])


def test_a_least_time_outlives_the_daemon(site: FakeSite, shrinkable: Pilot) -> None:
    assert shrinkable.request == Request(2, 3000, 600)
    site.restart()
    assert site.state.pilots[shrinkable.id].request == Request(shrinkable.request.p, 3000, 600)


def test_a_request_that_started_shorter_while_a_change_of_it_was_under_way(
    site: FakeSite, shrinkable: Pilot
) -> None:
    """The scheduler refuses the change; what it gave is what is charged."""
    site.backend.on_reshape = ChangeRefused("Job is no longer pending execution")
    site.backend.say(shrinkable.tag, JobState.RUNNING)
    site.backend.asks_for(shrinkable.tag, Request(shrinkable.request.p, 900))
    crafted = CraftedRequest(Request(1, 3600, 1200), None, 3, "asks for more")
    change = Reshape(shrinkable.id, crafted, Demand(waiting=3, runtime=60.0, bag=shrinkable.bag))
    asyncio.run(drive(site.state, step_of(site.state).act([change])))
    assert site.backend.changed[-1].request.least == 1200
    steps(site)
    reserved = site.state.core.treasury.ledger.open_pilots[shrinkable.id]
    known = site.state.pilots[shrinkable.id]
    assert (reserved.p, reserved.tr) == (known.request.p, known.request.tr) == (shrinkable.request.p, 900)
