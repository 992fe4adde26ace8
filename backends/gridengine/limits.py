"""The three limits of De Rose §4.3 as queues, environments and the cell set them; quotas: see `qsub -w e`."""

from __future__ import annotations

import math

from adaptor.model import Request
from backends.ceilings import Bound, Ceilings
from backends.gridengine.rows import Cell, GridQueue, Pe
from backends.observed.site import SiteNodes


def ceilings(cell: Cell, queue: GridQueue, nodes: SiteNodes) -> Ceilings:
    """What a request of the site may ask for."""
    name, total = f"queue {queue.name}", sum(machine.processors for machine in nodes.machines)
    widest = max((_reach(pe, nodes) for pe in pes_of(cell, queue)), default=1)
    slots = Bound(total, f"all slots of {name}"), Bound(widest, f"parallel environments of {name}")
    return Ceilings(
        requests=Bound(cell.max_jobs, "max_u_jobs" if cell.max_jobs < math.inf else "no limit"),
        processors=min(slots),
        seconds=Bound(queue.seconds, f"h_rt of {name}" if queue.seconds < math.inf else "no limit"),
        whole=total,
        node=max(nodes.sizes.values(), default=nodes.usual_size),
    )


def pes_of(cell: Cell, queue: GridQueue) -> list[Pe]:
    return [cell.pes[name] for name in queue.pes if name in cell.pes]


def _reach(pe: Pe, nodes: SiteNodes) -> int:
    """Slots that a request can have in it at most."""
    if pe.rule == "$pe_slots":
        return min(pe.slots, max(nodes.sizes.values(), default=1))
    return pe.slots if pe.controls else min(pe.slots, pe.per_host or 1)


def refusal(request: Request, cell: Cell, queue: GridQueue, nodes: SiteNodes) -> str:
    """Why a queue never takes a request, with the way out; empty where it may."""
    known = ceilings(cell, queue, nodes)
    if request.p > (most := known.processors).value:
        return (
            f"{request.p} processors were asked for, but Grid Engine gives at most {most.value:g} "
            f"({most.source}): lower `limits.max_proc` of this site"
        )
    if request.tr > known.seconds.value:
        return f"queue {queue.name} takes at most {queue.seconds:g} s: lower `limits.max_tr` of this site"
    return ""
