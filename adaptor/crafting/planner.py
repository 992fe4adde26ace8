"""One planning step of a site: which requests to issue, withhold or withdraw. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.coverage import coverage, holds
from adaptor.crafting.multisite.site_status import SitePart
from adaptor.crafting.refusal import everything_covered, limit_reached, no_answer, nothing_possible
from adaptor.crafting.shape import task_slots
from adaptor.crafting.situation import (
    CraftingSituation,
    Decision,
    Demand,
    Heuristic,
    Issue,
    PilotView,
    PlanningView,
    SiteRules,
    Withdraw,
    Withhold,
)
from adaptor.crafting.static import static
from adaptor.model import CraftedRequest, PendingJob, PilotState, QueueState
from adaptor.units import counted, format_duration

HEURISTICS: dict[str, Heuristic] = {"static": static, "adaptive": adaptive}
"""The heuristics by their names in a site's configuration."""


def plan(view: PlanningView, part: SitePart | None = None) -> list[Decision]:
    """The decisions for a site: withdrawals first, then requests in order of urgency.

    The step issues requests for the waiting tasks that no pilot in the system covers (see `coverage`). If
    several sites serve the same bags, `part` names this site's part of those tasks, by demand (see
    `adaptor.crafting.multisite`). The three limits always hold; a pilot that this step withdraws still
    counts. If tasks wait and the step issues no request for them, a `Withhold` says why.

    Raises:
        KeyError: `view.heuristic` is not in `HEURISTICS`.
    """
    cover = part or coverage(view)
    decisions: list[Decision] = [*_withdrawals(view, cover.needless)]
    if part is not None:
        decisions += [Withdraw(pilot, reason) for pilot, reason in part.late.items()]
    if not any(demand.waiting for demand in view.demands):
        return decisions
    if view.queue is None:
        return [*decisions, Withhold(no_answer(view))]
    uncovered = cover.uncovered if part else _with_paced(cover.uncovered, view.demands)
    if not any(uncovered):
        return [*decisions, Withhold(part.reason if part else everything_covered(view))]
    in_system = sum(pilot.state.in_system for pilot in view.pilots)
    allowed = view.rules.limits.max_pending_requests - in_system
    if allowed <= 0:
        return [*decisions, Withhold(limit_reached(view, sum(uncovered)))]
    return [*decisions, *_requests(view, view.queue, uncovered, allowed)]


def _with_paced(uncovered: Sequence[int], demands: Sequence[Demand]) -> list[int]:
    """Where hosts are bought one by one, whoever says how many has counted what the pilots can do."""
    return [
        demand.waiting if demand.whole is not None and demand.most else each
        for each, demand in zip(uncovered, demands, strict=True)
    ]


def _withdrawals(view: PlanningView, needless: list[int]) -> list[Withdraw]:
    return [
        Withdraw(pilot.id, _why_needless(view, pilot))
        for pilot in view.pilots
        if pilot.id in needless and pilot.state is PilotState.QUEUED
    ]


def _why_needless(view: PlanningView, pilot: PilotView) -> str:
    served = [demand for demand in view.demands if demand.bag == pilot.bag]
    demands = [demand for demand in served if demand.waiting]
    if not demands:
        return f"no task waits ({sum(demand.running for demand in served)} running)"
    long_enough = [demand for demand in demands if holds(pilot, demand)]
    if not long_enough:
        shortest = min(demand.shortest for demand in demands)
        return (
            f"{format_duration(pilot.request.tr)} is too short for every waiting task: "
            f"the shortest needs {format_duration(shortest)}"
        )
    fitting = [demand for demand in long_enough if _has_slot(view.rules, pilot, demand)]
    if not fitting:
        narrowest = min(demand.processors_per_task for demand in long_enough)
        return (
            f"{counted(pilot.request.p, 'processor')} cannot run any waiting task: "
            f"the narrowest needs {narrowest}"
        )
    waiting = sum(demand.waiting for demand in fitting)
    fit = "fits" if waiting == 1 else "fit"
    return f"the {counted(waiting, 'waiting task')} already {fit} in idle slots and earlier pilots"


def _has_slot(rules: SiteRules, pilot: PilotView, demand: Demand) -> bool:
    return task_slots(pilot.request.p, demand.processors_per_task, rules.granularity) > 0


def _requests(view: PlanningView, queue: QueueState, uncovered: list[int], allowed: int) -> list[Decision]:
    """Craft requests for each demand in turn, the largest uncovered share first.

    Each demand gets an equal part of the requests that are still allowed, so every demand gets its first
    request before another one gets its second. Requests that one demand leaves go to the next. The queue
    of each demand contains the requests crafted before it.
    """
    decisions: list[Decision] = []
    urgent = sorted(
        (index for index, tasks in enumerate(uncovered) if tasks),
        key=lambda index: -uncovered[index] / view.demands[index].waiting,
    )
    queue = _with_submitting(queue, view.pilots)
    for turn, index in enumerate(urgent):
        part = math.ceil(allowed / (len(urgent) - turn))
        situation = _situation(view, queue, view.demands[index], uncovered[index], part)
        crafted = _within(HEURISTICS[view.heuristic](situation), view.demands[index])
        if crafted:
            decisions += [Issue(each, view.demands[index]) for each in crafted]
        else:
            decisions.append(Withhold(view.demands[index].why_most or nothing_possible(situation)))
        allowed -= len(crafted)
        queue = _with_crafted(queue, crafted)
    return decisions


def _within(crafted: list[CraftedRequest], demand: Demand) -> list[CraftedRequest]:
    """The first requests whose sum of processors is within `demand.most`."""
    if demand.most is None:
        return crafted
    kept: list[CraftedRequest] = []
    left = demand.most
    for each in crafted:
        left -= each.request.p
        if left < 0:
            break
        kept.append(msgspec.structs.replace(each, reason=f"{each.reason}; {demand.why_most}"))
    return kept


def _rules(view: PlanningView, demand: Demand) -> SiteRules:
    """The site's rules with the demand's own bounds on p and tr."""
    limits = view.rules.limits
    if demand.most is not None:
        limits = msgspec.structs.replace(limits, max_proc=min(limits.max_proc, demand.most))
    if demand.longest is not None:
        limits = msgspec.structs.replace(limits, max_tr=min(limits.max_tr, demand.longest))
    return msgspec.structs.replace(view.rules, limits=limits, least_tr=demand.whole or 0)


def _situation(
    view: PlanningView, queue: QueueState, demand: Demand, remaining: int, part: int
) -> CraftingSituation:
    return CraftingSituation(
        queue=queue,
        rules=_rules(view, demand),
        in_system=view.rules.limits.max_pending_requests - part,
        remaining_tasks=remaining,
        runtime=demand.runtime,
        processors_per_task=demand.processors_per_task,
        memory_per_task=demand.memory_per_task,
    )


def _with_submitting(queue: QueueState, pilots: Iterable[PilotView]) -> QueueState:
    """The queue plus the requests that are being submitted, which the scheduler may not show yet.

    If the scheduler shows one already, it counts twice: planning may then miss a free slot, but never
    requests the same slot twice.
    """
    return _with_pending(
        queue,
        [
            PendingJob(f"pilot {pilot.id}", pilot.request.p, pilot.request.tr)
            for pilot in pilots
            if pilot.state is PilotState.SUBMITTING
        ],
    )


def _with_crafted(queue: QueueState, crafted: list[CraftedRequest]) -> QueueState:
    return _with_pending(
        queue,
        [
            PendingJob(
                f"request {len(queue.pending) + index}",
                each.request.p,
                each.request.tr,
                each.predicted_start,
            )
            for index, each in enumerate(crafted)
        ],
    )


def _with_pending(queue: QueueState, jobs: list[PendingJob]) -> QueueState:
    return msgspec.structs.replace(queue, pending=(*queue.pending, *jobs))
