"""What a bag with aims buys in a possible course."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.forecast.buying import Bounds, Buyer
from adaptor.forecast.supply import Moment
from adaptor.runtimes.known import EarlierTasks, KnownRuntimes
from tests.forecast.test_forecast import LEARNER, facts, site

EARLIER = EarlierTasks(kind="fit.py", tasks=12, mean=900.0, factor=2.0, low=600.0, high=1200.0)

TASK = 630  # seconds of a task of `LEARNER`, with the pad


def first_bounds(spec: dict[str, Any], **known: Any) -> Bounds:
    """Bounds of the requests for the first of 160 tasks, by the hour."""
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
    return Buyer(facts(prefer="balanced", **spec)).bounds(at, moment)


def test_earlier_bags_count_as_what_a_user_says() -> None:
    earlier, told, unknown = (
        first_bounds({}, **known).slots for known in ({"earlier": EARLIER}, {"told": 900.0}, {})
    )
    assert earlier == told > unknown


@pytest.mark.parametrize(("deadline", "longest"), [(9000.0, 9000 + TASK), (1000.0, 3600), (500.0, None)])
def test_the_last_task_of_a_request_starts_by_the_deadline_or_the_end_of_a_paid_unit(
    deadline: float, longest: int | None
) -> None:
    assert first_bounds({"deadline": deadline}, told=900.0).longest == longest
