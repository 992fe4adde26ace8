"""What will become of bags, and how often that was right; every interval holds with probability 0.9."""

from __future__ import annotations

import msgspec

from adaptor.api.question import Question, Time, TimeInterval, WholeSeconds
from adaptor.bag_spec import BagSpec
from adaptor.budget.provisioning.site_offers import Line
from adaptor.forecast.estimate import Estimate


class ForecastView(msgspec.Struct, frozen=True, kw_only=True):
    """When a bag will end, and what it will cost."""

    cost: Estimate | None
    """Credits in the end; None: it does not pay, or too little is known yet."""
    end: TimeInterval | None
    """None while nothing is there or asked for that could end it."""
    deadline: Time | None
    in_file_order: bool = False
    """Whether the tasks that have run are no random sample of the bag."""


class FirstForecastView(msgspec.Struct, frozen=True, kw_only=True):
    """The first forecast of a bag, which is judged, and what came."""

    made: Time
    finished: int
    """Tasks with a result by then."""
    tasks: int
    """Tasks that had a result by then, or could still get one."""
    cost: Estimate | None
    """Credits in the end; None: the bag does not pay."""
    end: TimeInterval
    final_cost: float | None
    """None until the bag has ended and its pilots are settled."""
    final_end: Time | None
    """None while the bag runs."""
    cost_held: bool | None
    """None: that is not known yet, or the bag does not count."""
    end_held: bool | None
    not_counted: str
    """Why the bag does not count; empty: it does."""


class PlannedRequest(msgspec.Struct, frozen=True):
    """A request that would be made now."""

    site: str
    p: int
    tr: WholeSeconds
    start: Time | None
    """As planned by time limits; None: the heuristic does not look."""
    reason: str


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a bag if it were submitted now."""

    now: Time
    tasks: int
    requests: list[PlannedRequest]
    withheld: dict[str, str]
    """By site: why it would make no request now."""
    end: TimeInterval | None
    """None: no end can be seen."""
    work: Estimate
    """Processor-seconds of all tasks."""
    credits: Estimate | None
    """For that work; None: no price and no budget is set."""
    choices: list[Line] = []
    """As a quote offers them, from the cheapest slots to the fastest. Empty: no price is set, nothing is
    known of how long tasks take, or the extra `quotes` is not installed."""
    known: bool = False
    """Whether earlier bags tell enough for a quote without a sample."""
    earlier: list[str] = []
    """What earlier bags of the same kinds say, a sentence each."""
    problems: dict[str, str]
    """By site: why its queue could not be read."""


class GetPlan(Question[PlanView], frozen=True):
    """What would become of a bag of `tasks` tasks; the queues are read now, and nothing is submitted."""

    takes_time = True

    spec: BagSpec
    tasks: int
    budget: float | None = None
