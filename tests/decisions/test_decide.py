"""The one step: where nobody counts credits and no other site serves the bags, it is the planner's."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.backoff import Holdoff
from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, SiteState, Withhold
from adaptor.decisions.decide import decide
from adaptor.decisions.failures.shape_backoffs import Failures, ShapeHoldoffs
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.model import PilotState
from tests.crafting.planner_views import queued, running, site, tasks, views


def paid(demand: Demand) -> Demand:
    return msgspec.structs.replace(demand, payers={1: float(demand.waiting)})


def snapshot_of(view: SiteState, ledger: Ledger | None = None) -> Snapshot:
    """The same site, alone; bag 1 pays for all that waits."""
    if ledger is None:
        ledger = Ledger()
        ledger.set_price("here", Tariff(price_explicit=1.0, price_donated=1.0), 0.0)
    pilots = tuple(
        Pilot(**{**msgspec.structs.asdict(pilot), "submitted": pilot.submitted or 0.0})
        for pilot in view.requests
    )
    return Snapshot(
        site="here",
        sites={
            "here": SiteFacts(
                now=view.now,
                name="here",
                rules=view.rules,
                heuristic=view.heuristic,
                queue=view.queue,
                requests=pilots,
            )
        },
        queue=view.queue,
        demands=tuple(map(paid, view.demands)),
        ledger=ledger,
        memory=Memory(),
        work=True,
    )


def distinct_views() -> st.SearchStrategy[SiteState]:
    """Demands are by shape of task, so no two of them have the same."""
    return views().filter(lambda view: len({each.shape for each in view.demands}) == len(view.demands))


@given(distinct_views())
def test_a_site_alone_does_what_the_planner_says(view: SiteState) -> None:
    wanted = plan(msgspec.structs.replace(view, demands=tuple(map(paid, view.demands))))
    assert list(decide(snapshot_of(view)).actions) == wanted


@given(distinct_views(), st.integers(1, 5_000_000))
def test_all_requests_of_a_step_together_stay_within_the_budget(view: SiteState, amount: int) -> None:
    ledger = Ledger()
    ledger.set_price("here", Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=60), 0.0)
    ledger.set_budget(Budget(amount=amount, bag=1), 0.0)
    snapshot = snapshot_of(view, ledger)
    tariff = ledger.tariff("here")
    requests = [each.crafted.request for each in decide(snapshot).submits]
    assert sum(tariff.reservation("explicit", each.p, each.tr) for each in requests) <= amount
    assert ledger.of_bag(1).reserved == 0, "deciding sets nothing aside"


@given(views())
def test_the_same_snapshot_has_the_same_decision(view: SiteState) -> None:
    snapshot = snapshot_of(view)
    assert decide(snapshot) == decide(snapshot)


def test_a_pilot_that_can_never_start_is_withdrawn_with_the_reason() -> None:
    view = site(tasks(8), pilots=(queued(1, 4),))
    snapshot = snapshot_of(view)
    here = snapshot.sites["here"]
    pilots = tuple(msgspec.structs.replace(each, never="no such partition") for each in here.pilots)
    snapshot = msgspec.structs.replace(
        snapshot, sites={"here": msgspec.structs.replace(here, requests=pilots)}
    )
    first = decide(snapshot).actions[0]
    assert "the scheduler would never start it: no such partition" in str(first)


def test_start_up_that_takes_longer_than_the_pad_lengthens_it() -> None:
    pilot = Pilot(
        id=1, state=PilotState.RUNNING, request=queued(1, 4).request, started=900.0, first_hello=960.0,
        ends=4500.0, processors=4, known_since=890.0,
    )  # fmt: skip
    view = site(tasks(8))
    snapshot = snapshot_of(view)
    here = msgspec.structs.replace(snapshot.sites["here"], requests=(pilot,))
    actions = decide(msgspec.structs.replace(snapshot, sites={"here": here})).actions
    assert "LengthenPad" in str(actions)
    late = msgspec.structs.replace(pilot, known_since=950.0)
    here = msgspec.structs.replace(here, requests=(late,))
    actions = decide(msgspec.structs.replace(snapshot, sites={"here": here})).actions
    assert "LengthenPad" not in str(actions), "its worker may have called while no daemon listened"


def test_nothing_is_asked_for_while_requests_fail() -> None:
    view = site(tasks(8))
    snapshot = snapshot_of(view)
    here = snapshot.sites["here"]
    refused = Holdoff(failures=1, until=view.now + 30, reason="no such account")
    here = msgspec.structs.replace(here, failures=Failures(refused=ShapeHoldoffs(of_all=refused)))
    (told,) = decide(msgspec.structs.replace(snapshot, sites={"here": here})).actions
    assert isinstance(told, Withhold)
    assert told.reason.startswith("the last request failed (no such account); next try at ")


@pytest.mark.parametrize("granularity", [1, 4])
def test_tasks_that_must_run_alone_get_one_narrow_request(granularity: int) -> None:
    view = site(msgspec.structs.replace(tasks(6), alone=True))
    view = msgspec.structs.replace(view, rules=msgspec.structs.replace(view.rules, granularity=granularity))
    assert sum(issued.crafted.request.p for issued in decide(snapshot_of(site(tasks(6)))).submits) > 4
    (issued,) = decide(snapshot_of(view)).submits
    assert issued.crafted.request.p == granularity
    assert issued.crafted.reason.endswith("run alone, one after another")


def test_no_more_slots_are_asked_for_than_tasks_may_run_together() -> None:
    some = msgspec.structs.replace(tasks(300), together=5)
    (submit,) = decide(snapshot_of(site(some))).submits
    assert submit.crafted.request.p == 5
    assert "5 tasks may run at the same time (max-running, canary)" in submit.crafted.reason
    there = msgspec.structs.replace(queued(1, 3, tr=630), shape=some.shape)
    (submit,) = decide(snapshot_of(site(some, pilots=(there,)))).submits
    assert submit.crafted.request.p == 2, "beside the pilot that is in the system"
    there = msgspec.structs.replace(queued(1, 5, tr=630), shape=some.shape)
    (withheld,) = decide(snapshot_of(site(some, pilots=(there,)))).actions
    assert isinstance(withheld, Withhold)
    assert (
        "5 tasks may run at the same time (max-running, canary), and requests in the system have 5 slots"
        in withheld.reason
    )


def test_slots_of_pilots_that_end_too_soon_do_not_keep_tasks_from_requests() -> None:
    some = msgspec.structs.replace(tasks(2, runtime=600.0), shortest=600.0, together=2)
    ending = msgspec.structs.replace(running(1, 2, left=590, workers=2), shape=some.shape)
    (submit,) = decide(snapshot_of(site(some, pilots=(ending,)))).submits
    assert submit.crafted.request.p == 2
    busy = msgspec.structs.replace(some, running=1)
    (submit,) = decide(snapshot_of(site(busy, pilots=(ending,)))).submits
    assert submit.crafted.request.p == 1, "beside the task that runs there"
