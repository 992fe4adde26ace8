"""A heuristic with compiled loops is loaded before it is needed: its first decision would take seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, PilotView, PlanningView, SiteRules
from adaptor.model import Limits, PendingJob, PilotState, QueueState, Request

log = logging.getLogger(__name__)

_COMPILED = frozenset({"rollout"})


async def warm_up(heuristics: Iterable[str]) -> None:
    """Let each of these decide once on a small queue, in a thread."""
    for heuristic in sorted(_COMPILED.intersection(heuristics)):
        try:
            await asyncio.to_thread(plan, _small(heuristic))
        except Exception:  # what is wrong is told when a site decides
            log.exception("heuristic %s could not be loaded", heuristic)


def _small(heuristic: str) -> PlanningView:
    """One request of ours waits far longer than it would have to: all loops are needed to see that."""
    late = PendingJob("2", 2, 120.0, planned_start=30_000.0)
    queue = QueueState(now=0.0, processors=4, pending=(PendingJob("1", 4, 600.0), late))
    pilot = PilotView(id=1, job="2", state=PilotState.QUEUED, request=Request(2, 120), submitted=-600.0)
    return PlanningView(
        now=0.0,
        queue=queue,
        rules=SiteRules(limits=Limits(max_pending_requests=1, max_proc=4, max_tr=3600)),
        heuristic=heuristic,
        pilots=(pilot,),
        demands=(Demand(waiting=8, runtime=60.0),),
    )
