"""The static heuristic: requests of a fixed shape, independent of the queue."""

from __future__ import annotations

import math

from adaptor.crafting.places import CraftingSituation
from adaptor.model import CraftedRequest, Request
from adaptor.units import counted, format_duration


def static(situation: CraftingSituation) -> list[CraftedRequest]:
    """Algorithm 1 of De Rose et al. 2008, §4.3.1.

    Each allowed request asks for `min(maxProc, ⌈remainingTasks / allowedRequests⌉)` processors for
    maxTr. The paper's tasks have one processor each. For tasks of several processors the quotient counts
    tasks, and p is a whole number of tasks (and of nodes, where the site allocates whole nodes). Where
    rounding up leaves no task for the last requests, a case that the paper leaves open, we drop them.

    Returns an empty list if no task fits in a request.
    """
    shape = situation.shape
    allowed, remaining = situation.allowed_requests, situation.remaining_tasks
    if not allowed or remaining <= 0 or not shape.widest:
        return []
    tasks_each = math.ceil(remaining / allowed)
    processors = min(shape.widest, shape.processors_for(tasks_each))
    request = Request(processors, shape.rules.limits.max_tr)
    slots = shape.slots(processors)
    count = min(allowed, math.ceil(remaining / slots))
    reason = (
        f"asks {request.p} × {format_duration(request.tr)}: {counted(remaining, 'remaining task')} over "
        f"{counted(allowed, 'allowed request')}, each of the longest time allowed and of at most "
        f"{counted(shape.widest, 'processor')}"
    )
    most = shape.holds(processors, request.tr)
    share, rest = divmod(remaining, count)
    shares = [share + (index < rest) for index in range(count)]
    return [CraftedRequest(request, None, min(most, share), reason) for share in shares]
