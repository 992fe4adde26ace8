"""Why nothing is issued although tasks wait: one sentence with the numbers, for each case."""

from __future__ import annotations

from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import CraftingSituation, PilotView, PlanningView
from adaptor.model import PilotState
from adaptor.units import counted, format_duration


def no_answer(view: PlanningView) -> str:
    return (
        f"the scheduler has not answered, so its queue is not known; nothing is issued for the "
        f"{counted(_waiting(view), 'waiting task')} until it does"
    )


def everything_covered(view: PlanningView) -> str:
    return (
        f"the {counted(len(view.pilots), 'pilot')} in the system ({listed(view.pilots)}) can be "
        f"expected to take all of the {counted(_waiting(view), 'waiting task')}"
    )


def limit_reached(view: PlanningView, uncovered: int) -> str:
    limit = view.rules.limits.max_pending_requests
    return (
        f"max_pending_requests is {limit} and {listed(view.pilots)} are in the system, which leaves "
        f"{uncovered} of {counted(_waiting(view), 'waiting task')} for later requests"
    )


def nothing_possible(situation: CraftingSituation) -> str:
    """Why a heuristic has crafted nothing for the remaining tasks of a situation."""
    shape = RequestShape.of(situation)
    tasks = counted(situation.remaining_tasks, "task")
    if situation.allowed_requests == 0:
        return f"every request that is allowed went to other tasks, {tasks} wait for the next one"
    if shape.widest == 0:
        return f"none of {tasks} fits into a request: {_too_wide(shape)}"
    least = format_duration(shape.tr_for(1, shape.rules.limits.max_tr))
    return (
        f"no free slot of the queue has {counted(shape.unit, 'processor')} for {least}, "
        f"which is the least that one of {tasks} needs"
    )


def _too_wide(shape: RequestShape) -> str:
    need = counted(max(shape.unit, shape.processors_per_task), "processor")
    if shape.unit > shape.processors_per_task:
        need += f" (whole nodes of {shape.rules.granularity})"
    if shape.processors_per_task > shape.rules.granularity > 1:
        return f"it needs {need} on one node, and a node has {shape.rules.granularity}"
    limit = shape.rules.limits.max_proc
    if shape.unit > limit:
        return f"it needs {need}, but max_proc is {limit}"
    return f"it needs {need}, but the site has {shape.site_processors} in service"


def _waiting(view: PlanningView) -> int:
    return sum(demand.waiting for demand in view.demands)


def listed(pilots: tuple[PilotView, ...]) -> str:
    """`pilot 4 running, pilots 5 and 7 queued`."""
    by_state: dict[PilotState, list[str]] = {}
    for pilot in pilots:
        by_state.setdefault(pilot.state, []).append(str(pilot.id))
    return ", ".join(_named(ids, state) for state, ids in by_state.items()) or "no pilots"


def _named(ids: list[str], state: PilotState) -> str:
    if len(ids) == 1:
        return f"pilot {ids[0]} {state.value}"
    if len(ids) > 5:
        return f"{len(ids)} pilots {state.value}"
    return f"pilots {', '.join(ids[:-1])} and {ids[-1]} {state.value}"
