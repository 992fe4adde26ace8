"""A queued request that would be withdrawn and made again is changed in its place instead. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from adaptor.crafting.reasons import shown
from adaptor.crafting.situation import (
    PilotView,
    PlannedAction,
    Reshape,
    SiteRules,
    SiteState,
    SubmitRequest,
    Withdraw,
    Withhold,
)
from adaptor.model import PilotState, QueueState, Request
from adaptor.units import round_up


def reshaped(
    view: SiteState,
    wanted: Sequence[PlannedAction],
    plan_without: Callable[[SiteState], Sequence[PlannedAction]],
) -> Sequence[PlannedAction]:
    """The decisions, with one `Reshape` for a withdrawal and a request for tasks of the same shape.

    A planner may make the better request in a later step only, when the withdrawn one has left. So it is
    asked for it at once: `plan_without` plans the site without the requests that are to be withdrawn.
    """
    given_up: dict[int, Withdraw] = {}
    planned = wanted
    changeable = {pilot.id for pilot in view.requests if view.rules.may_reshape and _may_change(view, pilot)}
    while new := [
        each
        for each in planned
        if isinstance(each, Withdraw) and each.pilot in changeable and each.pilot not in given_up
    ]:
        given_up.update((each.pilot, each) for each in new)
        jobs = {pilot.job for pilot in view.requests if pilot.id in given_up}
        others = tuple(pilot for pilot in view.requests if pilot.id not in given_up)
        queue = view.queue and _without_jobs(view.queue, jobs)
        planned = plan_without(msgspec.structs.replace(view, requests=others, queue=queue))
    left = dict(given_up)
    decisions = [_in_place(view, decision, left) for decision in planned]
    return wanted if len(left) == len(given_up) else [*left.values(), *decisions]


def same_request(rules: SiteRules, one: Request, other: Request) -> bool:
    """Whether two requests are the same to the scheduler."""
    one, other = (
        msgspec.structs.replace(each, tr=round_up(each.tr, rules.time_resolution)) for each in (one, other)
    )
    return one == other


def _may_change(view: SiteState, pilot: PilotView) -> bool:
    """Whether a pilot waits in the queue, and tasks of the shape that it was made for wait for it.

    Where a rule on hosts has counted the pilot, nothing is planned without it.
    """
    if pilot.state is not PilotState.QUEUED or pilot.job is None or pilot.leaving or pilot.fixed:
        return False
    return any(
        demand.shape == pilot.shape and demand.waiting and not demand.hosts_counted for demand in view.demands
    )


def _without_jobs(queue: QueueState, jobs: Collection[str | None]) -> QueueState:
    return msgspec.structs.replace(
        queue,
        pending=tuple(job for job in queue.pending if job.id not in jobs),
        partitions={name: _without_jobs(each, jobs) for name, each in queue.partitions.items()},
    )


def _in_place(view: SiteState, decision: PlannedAction, given_up: dict[int, Withdraw]) -> PlannedAction:
    """The decision; for a request, the change of one that was given up, which is taken out of these."""
    if not isinstance(decision, SubmitRequest):
        return decision
    replaced = [
        pilot for pilot in view.requests if pilot.id in given_up and _can_become(view.rules, pilot, decision)
    ]
    if not replaced:
        return decision
    crafted = decision.crafted
    same = [pilot for pilot in replaced if same_request(view.rules, pilot.request, crafted.request)]
    pilot = (same or replaced)[0]
    why = given_up.pop(pilot.id).reason
    if same:
        return Withhold(f"pilot {pilot.id} asks for that already: {crafted.reason}", decision.demand)
    reason = f"was {shown(pilot.request)}: {why}; {crafted.reason}"
    return Reshape(pilot.id, msgspec.structs.replace(crafted, reason=reason), decision.demand)


def _can_become(rules: SiteRules, pilot: PilotView, issue: SubmitRequest) -> bool:
    """Whether a queued pilot can be changed into a request: schedulers do not change the number of nodes."""
    crafted, demand = issue.crafted, issue.demand
    if pilot.shape != demand.shape or pilot.partition != crafted.partition:
        return False
    whole_nodes = rules.granularity > 1 or demand.task.nodes > 1
    return not whole_nodes or pilot.request.p == crafted.request.p
