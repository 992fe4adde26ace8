"""What a bag with aims buys in a possible course."""

from __future__ import annotations

from typing import Any

import msgspec

from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.forecast.buying import Buyer
from adaptor.forecast.supply import Moment
from adaptor.runtimes.known import EarlierTasks, KnownRuntimes
from tests.forecast.test_forecast import LEARNER, facts, site

EARLIER = EarlierTasks(kind="fit.py", tasks=12, mean=900.0, factor=2.0, low=600.0, high=1200.0)


def first_slots(**known: Any) -> int:
    """Slots for the first of 160 tasks, by the hour."""
    learner = msgspec.structs.replace(LEARNER, seen=KnownRuntimes(**known))
    at = site(learner=learner, terms=HostTerms(unit=3600.0, startup=30.0), whole_units=True)
    moment = Moment(
        now=0.0,
        uncovered=160,
        waiting=160,
        learners={"site": learner},
        longest_cut={"site": 0.0},
        seen=KnownRuntimes(told=known.get("told")),
    )
    return Buyer(facts(prefer="balanced")).bounds(at, moment).slots


def test_earlier_bags_count_as_what_a_user_says() -> None:
    assert first_slots(earlier=EARLIER) == first_slots(told=900.0) > first_slots()
