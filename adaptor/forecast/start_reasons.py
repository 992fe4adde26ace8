"""Why something starts when it does, and what its forecast leaves out, in sentences. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from adaptor.crafting.futures.drawn_queue import is_job
from adaptor.crafting.nodes.schedule import why_by_processors
from adaptor.forecast.start import Before, StartForecast, StartRequest, processors_for
from adaptor.model import QueueState
from adaptor.units import counted, format_clock, format_duration, format_instant, verb

_A_DAY = 20 * 3600.0
FEW = 20  # jobs that were seen to end, below which little is known of how long jobs run


def reason(
    found: StartForecast, request: StartRequest | None, queue: QueueState, at: float | None = None
) -> str:
    """One sentence; `request` is None of a job that waits."""
    if math.isinf(found.planned):
        out = sum(not node.in_service for node in queue.nodes)
        nodes = f" ({out} of {counted(len(queue.nodes), 'node')} are out of service)" if out else ""
        if request is not None:
            there = queue.processors if request.unit is None else processors_for(request.unit, queue)
            if there < request.processors:
                needs = counted(request.processors, "processor")
                return f"it needs {needs}, and {there} that it can use are in service now{nodes}"
        return f"jobs without a known end hold what it needs{nodes}"
    if found.before is None:
        if request is None:
            return "the processors that it asks for are free now"
        are = "is" if request.processors == 1 else "are"
        free = f"{counted(request.processors, 'processor')} {are} free for {format_duration(request.tr)}"
        return f"{free} then" if at is not None and at > queue.now else free
    parts = "; ".join(_parts(found.before, found.planned, request, queue.now))
    return parts or "it starts when the plan of the queue has room for it"


def _parts(before: Before, planned: float, request: StartRequest | None, now: float) -> Iterator[str]:
    if before.hole is not None and request is not None:
        then = f", when {_named(before.then)} is to start" if before.then else ""
        count = request.processors
        free = f"{counted(count, 'processor')} {verb(count, 'are')} free"
        yield f"{free} until {_clock(before.hole, now)}{then}, and that is too short"
    if before.waiting:
        count = before.waiting
        yield f"{counted(count, 'job')} that {verb(count, 'wait')} {verb(count, 'come')} first"
    if before.job:
        holds = f"{_named(before.job)} ({counted(before.processors, 'processor')})"
        if before.runs:
            yield f"it needs what {holds} has until {_clock(planned, now)} at the latest"
        else:
            yield f"it follows {holds}, which is planned to end by {_clock(planned, now)}"


def _named(id: str) -> str:
    return f"job {id}" if is_job(id) else f"the {id}"


def _clock(at: float, now: float) -> str:
    return format_clock(at) if at - now < _A_DAY else format_instant(at)


def remarks(queue: QueueState, *, hidden: int, learned: int, at: float | None) -> list[str]:
    """Remarks on what the answer leaves out.

    Args:
        hidden: processors whose jobs the scheduler does not show.
        learned: jobs that were seen to end.
        at: when the request will be made; None: now.
    """
    found = []
    if hidden:
        found.append(
            f"the scheduler hides the jobs on {counted(hidden, 'processor')}, which count as held for ever"
        )
    out = sum(not node.in_service for node in queue.nodes if node.ours)
    if out:
        found.append(f"{counted(out, 'node')} out of service that may come back")
    if learned < FEW:
        found.append(f"little is known of how long jobs run here ({counted(learned, 'job')} seen to end)")
    if why := why_by_processors(queue):
        found.append(why)
    if at is not None and at > queue.now:
        found.append("jobs that come until then")
    found.append("jobs that come later with a higher priority")
    return found
