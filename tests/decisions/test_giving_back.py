"""What a bag gives back of its slots after a new plan: which pilots, when, and why."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.situation import SiteRules, Withdraw
from adaptor.decisions.actions import End, GiveBack
from adaptor.decisions.giving_back import give_back, give_back_surplus, why_given_back
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.requests import end_takes
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.model import Limits, PilotState, Request
from adaptor.scheduling.facts import BagFacts

NOW, HOUR = 1000.0, 3600
SPEC = BagSpec(name="b", cwd="/", output="/o", environment={}, slots={"far": 8})
RULES = SiteRules(limits=Limits(max_pending_requests=9, max_proc=64, max_tr=12 * HOUR), pad=30.0)


def running(number: int, slots: int = 2, *, started: float = NOW - 100, tr: int = 2 * HOUR) -> Pilot:
    return Pilot(
        id=number,
        bag=1,
        state=PilotState.RUNNING,
        request=Request(slots, tr),
        started=started,
        granted=float(tr),
        processors=slots,
    )


def queued(number: int, slots: int = 2, *, at: float = NOW + 100) -> Pilot:
    return Pilot(id=number, bag=1, state=PilotState.QUEUED, request=Request(slots, HOUR), predicted_start=at)


def bag(busy: Sequence[int] = ()) -> BagFacts:
    """`busy`: the pilots in which a task runs."""
    return BagFacts(
        id=1, spec=SPEC, tasks=100, waiting=50, finished=10, total=100.0, squares=1000.0, starts=(),
        attempts={}, by_pilot=dict.fromkeys(busy, (NOW - 50,)), learned={}, runtimes=(), every=1,
    )  # fmt: skip


def far(*pilots: Pilot) -> SiteFacts:
    return SiteFacts(name="far", rules=RULES, heuristic="adaptive", queue=None, requests=pilots)


def ledger(unit: int) -> Ledger:
    found = Ledger()
    found.set_price("far", Tariff(price_explicit=3.0, price_donated=1.0, charging_unit=unit), 0.0)
    return found


def acted(
    pilots: Sequence[Pilot], slots: int, *, unit: int = 1, busy: Sequence[int] = (), now: float = NOW
) -> list[Withdraw | End | GiveBack]:
    return list(give_back(ledger(unit), far(*pilots), bag(busy), slots, now))


def test_nothing_while_the_plan_has_use_for_all() -> None:
    assert acted([running(1), queued(2)], 4) == []
    assert acted([running(1)], 6) == []


def test_queued_requests_go_first_and_of_these_the_latest_to_start() -> None:
    pilots = [running(1), queued(2, at=NOW + 10), queued(3, at=NOW + 500)]
    assert acted(pilots, 4) == [
        Withdraw(3, "bag 1 is planned again: 2 of 6 slots at far are given back"),
    ]
    assert [action.pilot for action in acted(pilots, 2)] == [3, 2]


def test_by_the_second_an_idle_pilot_ends_at_once_and_a_busy_one_takes_no_more_tasks() -> None:
    idle, busy = acted([running(1), running(2)], 0, busy=[2])
    assert idle == End(1, "bag 1 is planned again: 2 of 4 slots at far are given back")
    told = (
        "bag 1 is planned again: 2 of 4 slots at far are given back when the tasks that run there have ended"
    )
    assert busy == GiveBack(2, told, NOW)


def test_after_a_restart_a_pilot_whose_workers_are_silent_may_be_busy() -> None:
    silent = msgspec.structs.replace(running(1), processors=None, known_since=NOW - 1)
    assert isinstance(acted([silent], 0)[0], GiveBack)
    young = msgspec.structs.replace(running(1), processors=None, known_since=NOW - 200)
    assert isinstance(acted([young], 0)[0], End), "none of its workers has called yet"


def test_by_the_hour_it_takes_tasks_that_end_in_the_hour_that_is_paid() -> None:
    pilot = running(1, started=NOW - 600)
    ends = NOW + 3000 - end_takes(far())
    (action,) = acted([pilot], 0, unit=HOUR, busy=[1])
    assert isinstance(action, GiveBack)
    assert action.until == ends
    assert action.reason.endswith("are given back when their charging unit ends, in 49m 15s")
    (ended,) = acted([pilot], 0, unit=HOUR, busy=[1], now=ends)
    assert isinstance(ended, End)


def test_the_least_paid_one_goes_first() -> None:
    early, late = running(1, started=NOW - 3000), running(2, started=NOW - 100)
    (action,) = acted([late, early], 2, unit=HOUR)
    assert action.pilot == 1


def test_a_pilot_whose_request_ends_with_its_paid_time_needs_no_order() -> None:
    assert acted([running(1, tr=HOUR)], 0, unit=HOUR) == []


def test_a_pilot_stays_where_the_plan_needs_half_of_it() -> None:
    assert acted([running(1, 4)], 2) == []
    assert [action.pilot for action in acted([running(1, 4)], 1)] == [1], "a smaller request follows"


def test_a_whole_node_stays_though_the_plan_needs_one_slot_of_it() -> None:
    rules = msgspec.structs.replace(RULES, granularity=16)
    site = msgspec.structs.replace(far(running(1, 16)), rules=rules)
    assert list(give_back(ledger(1), site, bag(), 1, NOW)) == []


def snapshot(pilot: Pilot, *, unit: int = 1, busy: Sequence[int] = (), now: float = NOW) -> Snapshot:
    return Snapshot(
        now=now,
        site="far",
        sites={"far": far(pilot)},
        terms={},
        bags={1: bag(busy)},
        ledger=ledger(unit),
        memory=Memory(),
        work=True,
    )


def why(seen: Snapshot) -> str:
    return why_given_back(seen, seen.here, seen.here.requests[0])


def test_it_ends_with_its_last_task_or_with_its_unit() -> None:
    pilot = running(1).but(given_back=NOW)
    assert why(snapshot(pilot, busy=[1])) == ""
    assert why(snapshot(pilot)) == "the new plan of bag 1 does without it, and no task runs in it"
    assert why(snapshot(pilot.but(leaving="so"))) == ""
    by_the_hour = running(1).but(given_back=NOW + 60)
    assert why(snapshot(by_the_hour, unit=HOUR)) == ""
    assert why(snapshot(by_the_hour, unit=HOUR, busy=[1], now=NOW + 60)).endswith("its charging unit ends")
    assert why(snapshot(running(1))) == ""


def test_what_is_given_back_covers_only_what_ends_in_time_and_is_no_longer_counted() -> None:
    pilot = running(1).but(given_back=NOW + 60)
    assert pilot.ends == NOW + 60
    assert pilot.but(granted=float(HOUR)).ends == NOW + 60
    assert acted([pilot, running(2)], 2) == []


def test_only_bags_that_were_planned_anew_give_anything_back() -> None:
    seen = snapshot(running(1))
    assert list(give_back_surplus(seen, Memory())) == []
    assert len(list(give_back_surplus(seen, Memory(slots={1: {"near": 8}})))) == 1


@given(sizes=st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=6), slots=st.integers(0, 20))
def test_what_is_kept_and_asked_for_again_is_what_the_plan_has(
    sizes: list[tuple[int, bool]], slots: int
) -> None:
    pilots = [(running if runs else queued)(number, size) for number, (size, runs) in enumerate(sizes, 1)]
    gone = {action.pilot for action in acted(pilots, slots)}
    held = {pilot.id: pilot.request.p for pilot in pilots}
    kept = sum(size for id, size in held.items() if id not in gone)
    surplus = kept - slots
    assert surplus <= 0 or all(2 * surplus <= held[id] for id in held if id not in gone)
    assert sum(held.values()) > slots or not gone
    if surplus < 0 and gone:  # one of them was needed, and less than half of it
        assert any(2 * -surplus < held[id] for id in gone)
