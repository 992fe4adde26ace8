"""One planning step of a site: which requests to issue, withhold or withdraw. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.choosing import Craft, Wanted, craft_among, craft_in, one_by_one, shut_for
from adaptor.crafting.coverage import coverage
from adaptor.crafting.multisite.site_status import SitePart
from adaptor.crafting.needless import withdrawals
from adaptor.crafting.places import places_of
from adaptor.crafting.refusal import everything_covered, hour_used_up, limit_reached, no_answer
from adaptor.crafting.reshaping import reshaped
from adaptor.crafting.situation import (
    Decision,
    Demand,
    Heuristic,
    Issue,
    PlanningView,
    Reshape,
    Withdraw,
    Withhold,
)
from adaptor.crafting.spreading import spread
from adaptor.crafting.static import static
from adaptor.crafting.turns import turns
from adaptor.model import QueueState

HEURISTICS: dict[str, Heuristic] = {"static": static, "adaptive": adaptive, "rollout": adaptive}
"""The heuristics by their names in a site's configuration; what rollout cannot do yet, adaptive does."""

AMONG: dict[str, Craft] = {"static": one_by_one, "adaptive": spread, "rollout": spread}
"""How each goes about several partitions."""


def plan(view: PlanningView, part: SitePart | None = None) -> list[Decision]:
    """The decisions for a site, within its rules whatever the heuristic wants.

    If several sites serve the same bags, `part` names this site's part of the waiting tasks, by demand (see
    `adaptor.crafting.multisite`). The three limits always hold, and max_submissions; a pilot that this step
    withdraws still counts. A request that would be withdrawn and made anew is changed in its place where the
    scheduler does that. If tasks wait and the step neither issues, changes nor withdraws a request for them,
    a `Withhold` says why.

    Raises:
        KeyError: `view.heuristic` is not in `HEURISTICS`.
    """
    wanted = _planned(view, part)
    return within_rules(view, reshaped(view, wanted, lambda left: _planned(left, part)))


def within_rules(view: PlanningView, wanted: Iterable[Decision]) -> list[Decision]:
    """Decisions without those that the rules of a site do not allow.

    No request is withdrawn for a better one where the site forbids it, or where the better one could not be
    sent; and no more requests are sent than max_pending_requests and max_submissions leave.
    """
    left = view.requests_left
    kept: list[Decision] = []
    dropped = 0
    for decision in wanted:
        match decision:
            case Withdraw(recraft=True) if not view.rules.may_withdraw or view.submissions_left == 0:
                continue
            case Reshape() if not view.rules.may_reshape:
                continue
            case Issue(crafted) if left <= 0:
                dropped += crafted.tasks
                continue
            case Issue():
                left -= 1
        kept.append(decision)
    if dropped and view.submissions_left == 0:
        kept.append(Withhold(hour_used_up(view, dropped)))
    return kept


def _planned(view: PlanningView, part: SitePart | None) -> list[Decision]:
    """By rollout where it is wanted and knows the demand, else by one of the paper's heuristics."""
    if view.heuristic != "rollout":
        return _by_coverage(view, part)
    from adaptor.crafting.rollout.step import by_rollout, why_not_by_rollout  # numpy and numba

    why_not = "several sites share the tasks" if part is not None else why_not_by_rollout(view)
    if not why_not:
        return by_rollout(view)
    return [_told(each, why_not) for each in _by_coverage(view, part)]


def _waits(view: PlanningView) -> bool:
    return any(demand.waiting for demand in view.demands)


def _told(decision: Decision, why_not: str) -> Decision:
    """What `adaptive` decides in the place of rollout, and why it does."""
    if not isinstance(decision, Issue):
        return decision
    reason = f"{decision.crafted.reason}; by adaptive, since {why_not}"
    return Issue(msgspec.structs.replace(decision.crafted, reason=reason), decision.demand)


def _by_coverage(view: PlanningView, part: SitePart | None) -> list[Decision]:
    """Withdrawals first, then the requests that one heuristic crafts, in order of urgency.

    They are for the waiting tasks that no pilot in the system covers (see `coverage`).
    """
    cover = part or coverage(view)
    decisions: list[Decision] = [*withdrawals(view, cover.needless)]
    if part is not None:
        decisions += [Withdraw(pilot, reason) for pilot, reason in part.late.items()]
    if not _waits(view):
        return decisions
    if view.queue is None:
        return [*decisions, Withhold(no_answer(view))]
    uncovered = cover.uncovered if part else _with_paced(cover.uncovered, view.demands)
    if not any(uncovered):
        return [*decisions, Withhold(part.reason if part else everything_covered(view))]
    if not view.places_left:
        return [*decisions, Withhold(limit_reached(view, sum(uncovered)))]
    if view.requests_left <= 0:
        return [*decisions, Withhold(hour_used_up(view, sum(uncovered)))]
    return [*decisions, *_requests(view, view.queue, uncovered, view.requests_left)]


def _with_paced(uncovered: Sequence[int], demands: Sequence[Demand]) -> list[int]:
    """Where hosts are bought one by one, whoever says how many has counted what the pilots can do."""
    return [
        demand.waiting if demand.whole is not None and demand.most else each
        for each, demand in zip(uncovered, demands, strict=True)
    ]


def _requests(view: PlanningView, queue: QueueState, uncovered: list[int], allowed: int) -> list[Decision]:
    """Craft requests for each demand in turn (see `turns`).

    The queue of each demand contains the requests crafted before it, in whatever partition.
    """
    decisions: list[Decision] = []
    heuristic = HEURISTICS[view.heuristic]
    places = places_of(view, queue)
    for index, peers in turns(view.demands, uncovered, [i for i, tasks in enumerate(uncovered) if tasks]):
        wanted = Wanted(
            demand=view.demands[index],
            remaining=uncovered[index],
            allowed=math.ceil(allowed / peers),
            limit=view.rules.limits.max_pending_requests,
            heuristic=heuristic,
        )
        if len(view.rules.limits.partitions) > 1:
            made = craft_among(places, wanted, shut_for(view, queue, wanted.demand), AMONG[view.heuristic])
        else:
            made = craft_in(places, wanted)
        if made.crafted:
            decisions += [Issue(each, wanted.demand) for each in made.crafted]
        else:
            decisions.append(Withhold(wanted.demand.why_most or made.reason))
        allowed -= len(made.crafted)
        places = made.places
    return decisions
