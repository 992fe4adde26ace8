"""The end of a charging unit: who goes on, who ends (Silva et al. 2011, §3.5)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.situation import SiteRules
from adaptor.decisions.aims import Courses, why_not_another_unit
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.forecast.bag_facts import BagFacts
from adaptor.model import Limits, PilotState, Request
from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.learner import RuntimeLearner

HOUR = 3600.0
RULES = SiteRules(limits=Limits(max_pending_requests=4, max_proc=16, max_tr=12 * 3600), pad=30.0)
SPEC = BagSpec(name="b", cwd="/", output="/o", environment={}, prefer="balanced")
SHORT, LONG = 3500.0, 1800.0
"""Starts of tasks that have run for less and for more than the mean of 600 s when the unit is nearly over."""
FINISHED = KnownRuntimes(finished=40, total=40 * 600.0, squares=40 * 600.0**2)
NEARLY = 3570.0


def pilot(number: int, slots: int, *, tr: int = 7200, started: float = 0.0) -> Pilot:
    return Pilot(
        id=number,
        bag=1,
        state=PilotState.RUNNING,
        request=Request(slots, tr),
        started=started,
        granted=float(tr),
    )


def snapshot(
    starts: Sequence[float],
    *,
    now: float = NEARLY,
    unit: int = 3600,
    slots: int = 2,
    spec: BagSpec = SPEC,
    tr: int = 7200,
) -> Snapshot:
    """One pilot whose charging unit ends at 3600 s, with these running tasks, and one that is new."""
    others = (2900.0, 2950.0)
    running = {1: tuple(starts), 2: others}
    first = (*starts, *others)
    known = msgspec.structs.replace(
        FINISHED, running=len(first), starts=sum(first), first_start=min(first), told=spec.time
    )
    bag = BagFacts(
        id=1, spec=spec, tasks=100, waiting=50, known=known,
        attempts={"here": first}, by_pilot=running,
        learned={"here": RuntimeLearner(initial=600.0, factor=2, longest=3600.0, seen=FINISHED)},
        runtimes=(), every=1,
    )  # fmt: skip
    ledger = Ledger()
    ledger.set_price("here", Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=unit), 0.0)
    pilots = (pilot(1, slots, tr=tr), pilot(2, 2, started=2800.0))
    site = SiteFacts(now=now, name="here", rules=RULES, heuristic="adaptive", queue=None, requests=pilots)
    return Snapshot(
        site="here",
        sites={"here": site},
        bags={1: bag},
        ledger=ledger,
        memory=Memory(),
        work=True,
    )


def why(seen: Snapshot) -> str:
    return why_not_another_unit(seen, Courses(seen), seen.here, seen.here.pilots[0])


@pytest.mark.parametrize(
    ("starts", "ends"),
    [((SHORT, SHORT), True), ((LONG, LONG), False), ((SHORT, LONG), False), ((SHORT,), True), ((), True)],
)
def test_it_goes_on_with_tasks_that_have_run_longer_than_the_mean(
    starts: Sequence[float], ends: bool
) -> None:
    assert bool(why(snapshot(starts))) is ends


def test_it_says_why() -> None:
    assert why(snapshot((SHORT, SHORT))) == (
        "its charging unit ends, and of its 2 slots 0 should go on: "
        "the other tasks cost less if they start again elsewhere"
    )


@pytest.mark.parametrize("now", [600.0, 3500.0, 3601.0])
def test_only_just_before_the_end_of_a_unit(now: float) -> None:
    assert not why(snapshot((SHORT, SHORT), now=now))


def test_a_request_that_ends_with_the_unit_ends_by_itself() -> None:
    assert not why(snapshot((SHORT, SHORT), tr=3600))


def test_where_time_is_charged_by_the_second_no_unit_ends() -> None:
    assert not why(snapshot((SHORT, SHORT), unit=1))


@pytest.mark.parametrize("wishes", [{"prefer": None}, {"deadline": 1e6}])
def test_other_bags_keep_their_pilots(wishes: dict[str, object]) -> None:
    assert not why(snapshot((SHORT, SHORT), spec=msgspec.structs.replace(SPEC, **wishes)))
