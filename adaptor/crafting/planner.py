"""One planning step of a site: which requests to issue, withhold or withdraw. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from functools import partial

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.choosing import Plan, Wanted, by_free_slots, one_by_one
from adaptor.crafting.completion.rule import by_completion
from adaptor.crafting.coverage import coverage, has_slot, holds, largest_share_first
from adaptor.crafting.elastic.rule import by_holes, unneeded
from adaptor.crafting.fits import unit_of
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.multisite.division import SitePart
from adaptor.crafting.places import places_of
from adaptor.crafting.reasons import (
    awaited,
    better_one_waits,
    everything_covered,
    hour_used_up,
    no_answer,
    nothing_left,
    too_short,
    work_held,
)
from adaptor.crafting.reshaping import reshaped
from adaptor.crafting.serving import nobodys, pilots_by_demand
from adaptor.crafting.situation import (
    Demand,
    PilotView,
    PlannedAction,
    Reshape,
    SiteState,
    SubmitRequest,
    Withdraw,
    Withhold,
)
from adaptor.crafting.spreading import spread
from adaptor.crafting.static import static
from adaptor.crafting.submissions import SubmissionCount
from adaptor.model import PilotState
from adaptor.units import counted

PLANNERS: dict[str, Plan] = {
    "static": by_free_slots(static, partial(one_by_one, static)),
    "adaptive": by_free_slots(adaptive, spread),
    "completion": by_completion,
    "elastic": by_holes,
}
"""The function by which each heuristic makes requests."""


def plan(view: SiteState, part: SitePart | None = None) -> list[PlannedAction]:
    """The decisions for a site, within its rules whatever the heuristic wants.

    If several sites serve the same bags, `part` names this site's part of the waiting tasks, by demand (see
    `adaptor.crafting.multisite`). The three limits always hold, and max_submissions; a pilot that this step
    withdraws still counts. A request that would be withdrawn and made again is changed in its place where the
    scheduler does that. If tasks wait and the step neither issues, changes nor withdraws a request for them,
    a `Withhold` says why.

    Raises:
        KeyError: `view.heuristic` is not in `HEURISTICS`.
    """
    wanted = _planned(view, part)
    if _all_narrow(view):  # a queued pilot more or less is not worth a change in its place
        return within_rules(view, wanted)
    return within_rules(view, reshaped(view, wanted, lambda left: _planned(left, part)))


def _all_narrow(view: SiteState) -> bool:
    return view.narrow and not any(demand.paced for demand in view.demands)


def within_rules(view: SiteState, wanted: Iterable[PlannedAction]) -> list[PlannedAction]:
    """Decisions without those that the rules of a site do not allow.

    No request is withdrawn for a better one where the site forbids it, or where the better one could not be
    sent; and no more requests are sent than the site's limits and max_submissions leave. For the latter an
    array of equal ones counts once.
    """
    left, submissions = view.limit_left, SubmissionCount(view.submissions.left, view.rules.most_in_array)
    kept: list[PlannedAction] = []
    dropped, better = 0, False
    for decision in _within_work(view, wanted):
        if not isinstance(decision, SubmitRequest):
            submissions.interrupt()
        match decision:
            case Withdraw(recraft=True) if not view.rules.may_withdraw:
                continue
            case Withdraw(recraft=True) if view.submissions.left == 0:
                better = True
                continue
            case Reshape() if not view.rules.may_reshape:
                continue
            case SubmitRequest(crafted, demand) if left <= 0 or not submissions.holds(crafted, demand.shape):
                dropped += crafted.tasks
                continue
            case SubmitRequest():
                left -= 1
        kept.append(decision)
    if dropped and view.submissions.left == 0:
        kept.append(Withhold(hour_used_up(view, dropped)))
    elif better and not kept:
        kept.append(Withhold(better_one_waits(view)))
    return kept


def _within_work(view: SiteState, wanted: Iterable[PlannedAction]) -> Iterator[PlannedAction]:
    """The decisions without requests for which running and queued jobs leave too little of
    `Allowed.work_left`; if there is no pilot, one waits for it."""
    area = 0
    for decision in wanted:
        if isinstance(decision, SubmitRequest):
            new, partition = decision.crafted.request.area, decision.crafted.partition
            if (area or view.requests) and area + new > view.work_left(partition):
                yield Withhold(work_held(view, partition), decision.demand)
                continue
            area += new
        yield decision


def _planned(view: SiteState, part: SitePart | None) -> list[PlannedAction]:
    """Withdrawals first, then the requests for the waiting tasks, in order of urgency.

    Heuristics that replan look again at those that pilots in the system cover (see `coverage`), but not where
    the tasks were divided among several sites by cost or time.
    """
    many_narrow = part is None and _all_narrow(view)
    part = part or _undivided(view)
    replans = HEURISTICS[view.heuristic].replans
    replanned = [index for index, again in enumerate(part.replans) if again and replans]
    wanting = [demand.waiting > 0 or (many_narrow and demand.wants_pilots) for demand in view.demands]
    needless = part.needless if many_narrow else nobodys(view, part.needless, replanned)
    decisions: list[PlannedAction] = [*withdrawals(view, needless)]
    if not replanned:
        decisions += [Withdraw(pilot, reason) for pilot, reason in part.late.items()]
    if not any(wanting):
        return decisions
    if view.queue is None:
        return [*decisions, Withhold(no_answer(view))]
    served = [
        index
        for index, tasks in enumerate(part.uncovered)
        if tasks or (index in replanned and wanting[index])
    ]
    if not replanned:
        covered = part.reason or everything_covered(view)
        if refused := nothing_left(view, sum(part.uncovered)) if any(part.uncovered) else covered:
            return [*decisions, Withhold(refused)]
    return [*decisions, *_requests(view, part, served)]


def _undivided(view: SiteState) -> SitePart:
    """The part of a site that is the only one: all that waits."""
    cover = unneeded(view) if _all_narrow(view) else coverage(view)
    return SitePart(
        uncovered=[
            # The rule that counts hosts has counted what the pilots cover.
            demand.waiting if demand.hosts_counted and 0 < demand.most < math.inf else tasks
            for tasks, demand in zip(cover.uncovered, view.demands, strict=True)
        ],
        needless=cover.needless,
        replans=[True] * len(view.demands),
        elsewhere=[{}] * len(view.demands),
    )


def _requests(view: SiteState, part: SitePart, served: Sequence[int]) -> list[PlannedAction]:
    """Plan for each demand in turn (see `turns`).

    The queue of each demand contains the requests crafted before it, in whatever partition, and each gives up
    pilots of its own only.
    """
    decisions: list[PlannedAction] = []
    craft, places = PLANNERS[view.heuristic], places_of(view, part.places)
    serving = pilots_by_demand(view, served)
    allowed = view.requests_left
    for index, peers in turns(view.demands, part.uncovered, served):
        demand, replans = view.demands[index], part.replans[index]
        wanted = Wanted(
            demand=demand,
            remaining=part.uncovered[index],
            allowed=math.ceil(allowed / peers),
            pilots=tuple(serving[index]),
            replans=replans,
            elsewhere=part.elsewhere[index] if replans else {},
        )
        made = craft(places, wanted)
        decisions += [*made.withdrawn, *made.reshaped]
        decisions += [SubmitRequest(crafted, demand) for crafted in made.crafted]
        if demand.waiting and not (made.crafted or made.withdrawn or made.reshaped):
            first = "" if demand.running else awaited(view.now, wanted.pilots)
            why = filter(None, (first, _why_none(view, demand, made.reason)))
            decisions.append(Withhold("; ".join(why) or everything_covered(view), demand))
        allowed -= len(made.crafted)
        places = made.places
    return decisions


def _why_none(view: SiteState, demand: Demand, reason: str) -> str:
    """The reason that leaves a demand without a request: the heuristic's, or the bound on the demand."""
    if math.isinf(demand.most):
        return reason
    binds = demand.most < unit_of(view.rules, view.queue, demand.task).processors
    return demand.why_most if binds or not reason or view.requests_left else reason


def turns(
    demands: Sequence[Demand], uncovered: Sequence[int], served: Collection[int]
) -> Iterator[tuple[int, int]]:
    """Demands in the order in which they are served: by priority, then by their uncovered share, the largest
    first.

    Each demand of a priority gets an equal part of the requests that are still allowed, so every one of them
    gets its first request before another one gets its second. Requests that one demand leaves go to the next.

    Args:
        uncovered: by demand, waiting tasks that no pilot covers.
        served: numbers of those with waiting tasks that get a turn.

    Yields:
        The number of a demand, and among how many, itself included, the requests that are left are divided.
    """
    order = largest_share_first(served, uncovered, [demand.waiting for demand in demands])
    order.sort(key=lambda index: -demands[index].priority)
    for turn, index in enumerate(order):
        yield index, sum(demands[other].priority == demands[index].priority for other in order[turn:])


def withdrawals(view: SiteState, needless: Container[int]) -> list[Withdraw]:
    """Withdrawals of the pilots that `coverage` finds needless and that have not started."""
    return [
        Withdraw(pilot.id, _why_needless(view, pilot))
        for pilot in view.requests
        if pilot.id in needless and pilot.state is PilotState.QUEUED
    ]


def _why_needless(view: SiteState, pilot: PilotView) -> str:
    served = [demand for demand in view.demands if demand.bag == pilot.bag]
    demands = [demand for demand in served if demand.waiting]
    if not demands:
        return f"no task waits ({sum(demand.running for demand in served)} running)"
    long_enough = [demand for demand in demands if holds(pilot, demand)]
    if not long_enough:
        return too_short(pilot, demands)
    fitting = [demand for demand in long_enough if has_slot(view, pilot, demand)]
    if not fitting:
        narrowest = min(demand.task.processors for demand in long_enough)
        return (
            f"{counted(pilot.request.p, 'processor')} cannot run any waiting task: "
            f"the narrowest needs {narrowest}"
        )
    waiting = sum(demand.waiting for demand in fitting)
    fit = "fits" if waiting == 1 else "fit"
    return f"the {counted(waiting, 'waiting task')} already {fit} in idle slots and earlier pilots"
