"""The three limits of De Rose §4.3 as Grid Engine sets them: queue, parallel environments, quotas, cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase

from adaptor.model import Request
from backends.ceilings import Bound, Ceilings
from backends.gridengine.rows import Cell, GridQueue, Pe, Quota
from backends.observed.site import SiteNodes


def ceilings(cell: Cell, queue: GridQueue, nodes: SiteNodes) -> Ceilings:
    """What a request of the site may ask for."""
    total = total_processors(nodes)
    widest = max((_reach(pe, nodes) for pe in pes_of(cell, queue)), default=1)
    return Ceilings(
        requests=Bound(cell.max_jobs, "max_u_jobs" if cell.max_jobs < math.inf else "no limit"),
        processors=min(
            [
                Bound(total, f"all slots of queue {queue.name}"),
                Bound(widest, f"parallel environments of queue {queue.name}"),
                *(Bound(quota.slots, f"resource quota set {quota.name}") for quota in quotas_of(cell, queue)),
            ]
        ),
        seconds=Bound(
            queue.seconds, f"h_rt of queue {queue.name}" if queue.seconds < math.inf else "no limit"
        ),
        whole=total,
        node=max(nodes.sizes.values(), default=nodes.usual_size),
    )


def total_processors(nodes: SiteNodes) -> int:
    """Of all hosts, in service or not."""
    return sum(machine.processors for machine in nodes.machines)


def pes_of(cell: Cell, queue: GridQueue) -> list[Pe]:
    return [cell.pes[name] for name in queue.pes if name in cell.pes]


def quotas_of(cell: Cell, queue: GridQueue) -> Sequence[Quota]:
    return [quota for quota in cell.quotas if any(fnmatchcase(queue.name, each) for each in quota.queues)]


def _reach(pe: Pe, nodes: SiteNodes) -> int:
    """Slots that a request can have in it at most."""
    largest = max(nodes.sizes.values(), default=1)
    if pe.rule == "$pe_slots":
        return min(pe.slots, largest)
    return pe.slots if pe.controls else min(pe.slots, pe.per_host or 1)


def refusal(request: Request, cell: Cell, queue: GridQueue, nodes: SiteNodes) -> str:
    """Why a queue never takes a request, with the way out; empty where it may."""
    known = ceilings(cell, queue, nodes)
    if request.p > known.processors.value:
        return (
            f"{request.p} processors were asked for, but Grid Engine gives at most "
            f"{known.processors.value:g} ({known.processors.source}): lower `limits.max_proc` of this site"
        )
    if request.tr > known.seconds.value:
        return f"queue {queue.name} takes at most {queue.seconds:g} s: lower `limits.max_tr` of this site"
    return ""
