"""The free slots of a queue as a user is shown them. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import msgspec

from adaptor.api import FreeStep, GpuTotals, SlotsView, SlotView
from adaptor.config.schema import SiteConfig
from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import RequestShape, usable, why_no_node_holds
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.daemon.sites import limits_of, make_backend
from adaptor.model import FreeSlot, QueueState
from adaptor.protocol.state_directory import private_directory, state_directory
from adaptor.resources import Node, TaskSize
from backends.base import SchedulerError
from backends.registry import site_rules


def slots_views(
    site: str, queue: QueueState, rules: SiteRules, task: TaskSize | None = None
) -> list[SlotsView]:
    """The holes of a site, by partition where requests choose one (see `slots_view`)."""
    rules = msgspec.structs.replace(rules, limits=rules.limits.within(queue))
    if not queue.partitions:
        return [slots_view(site, queue, rules, task)]
    found = {
        name: slots_view(site, each, rules.in_partition(name), task)
        for name, each in queue.partitions.items()
    }
    found |= {name: unread(site, why) for name, why in queue.closed.items()}
    names = sorted(found, key=list(rules.limits.partitions).index)
    return [msgspec.structs.replace(found[name], partition=name) for name in names]


def slots_view(site: str, queue: QueueState, rules: SiteRules, task: TaskSize | None = None) -> SlotsView:
    """The holes of a queue: all maximal free slots, with the largest request that each one takes.

    This is what Maui and Moab call `showbf`, and what a user of Slurm or PBS has no command for.

    `task`: of which size the tasks of these requests are; None: of one processor.
    """
    size = task or TaskSize()
    found = Availability(queue)
    shape = RequestShape.for_demand(rules, queue, Demand(runtime=1.0, task=size))
    fitting = found.profile(shape.chunk)
    return SlotsView(
        site=site,
        observed=queue.now,
        processors=queue.processors,
        gpus=gpu_counts(queue),
        task=task,
        in_system=_allowed(queue),
        waiting=len(queue.pending),
        no_room=why_no_node_holds(queue, size),
        free=[FreeStep(time, processors) for time, processors in found.profile().steps()],
        slots=[_slot(slot, fitting, shape, counted=task is not None) for slot in _lasting(fitting)],
        problem="",
    )


def _allowed(queue: QueueState) -> int | None:
    most = max(allowed.in_system for allowed in queue.allowances)
    return None if math.isinf(most) else int(most)


def in_service(queue: QueueState) -> int:
    """Processors that requests may use; of nodes that several partitions have, once."""
    if not queue.partitions or not queue.nodes:
        return queue.processors
    return sum(node.processors for _, nodes in _by_place(queue) for node in nodes.values())


def _by_place(queue: QueueState) -> Iterator[tuple[QueueState, dict[str, Node]]]:
    """Nodes in service by partition that requests may use and that no partition before it has."""
    seen: set[str] = set()
    for place in queue.partitions.values() or [queue]:
        found = {node.name: node for node in usable(place) if node.in_service and node.name not in seen}
        seen |= found.keys()
        yield place, found


def gpu_counts(queue: QueueState) -> list[GpuTotals]:
    """GPUs on the nodes in service that requests of the site may use, by type."""
    nodes: dict[str, dict[str, int]] = {}
    held: Counter[tuple[str, str]] = Counter()
    for place, own in _by_place(queue):
        nodes |= {name: dict(node.gpus) for name, node in own.items()}
        for part in (part for job in place.running for part in job.parts if part.node in own):
            held.update({(part.node, type): count for type, count in part.gpus})
    types = sorted({type for gpus in nodes.values() for type in gpus})
    return [
        GpuTotals(
            type=type,
            total=sum(gpus.get(type, 0) for gpus in nodes.values()),
            free=sum(max(0, gpus.get(type, 0) - held[name, type]) for name, gpus in nodes.items()),
        )
        for type in types
    ]


def unread(site: str, problem: str) -> SlotsView:
    """A site whose queue could not be read."""
    return SlotsView(site=site, observed=None, processors=0, free=[], slots=[], problem=problem)


def _lasting(free: Profile) -> list[FreeSlot]:
    """The slots whose processors stay free on their nodes to the end.

    Others are cut where a node is taken, and what stays longer is a slot of its own.
    """
    slots, found = free.free_slots(), dict[FreeSlot, None]()
    starts = sorted({slot.start for slot in slots}, reverse=True)
    for slot in slots:
        ends = [slot.end, *(start for start in starts if slot.start < start < slot.end)]
        stays = {end: free.minimum(slot.start, end) for end in ends}
        whole = max((end for end in ends if stays[end] >= slot.processors), default=slot.start)
        for end, processors in ((whole, slot.processors), (slot.end, stays[slot.end])):
            if end > slot.start and processors:
                found[FreeSlot(slot.start, end - slot.start, processors)] = None
    return [*found]


def _slot(slot: FreeSlot, free: Profile, shape: RequestShape, *, counted: bool) -> SlotView:
    tr = shape.longest_tr(slot.duration)
    p = min(shape.widest, shape.fit(free.minimum(slot.start, slot.start + tr)))
    fits = p > 0 and tr > shape.rules.pad
    return SlotView(
        start=slot.start,
        end=None if math.isinf(slot.duration) else slot.end,
        processors=slot.processors,
        p=p if fits else None,
        tr=tr if fits else None,
        tasks=shape.slots(p) if counted and fits else None,
    )


def read_site(name: str, config: SiteConfig, task: TaskSize | None = None) -> list[SlotsView]:
    """The free slots of a site's queues, read now; one that does not answer has a problem instead."""
    try:
        backend = make_backend(name, config, private_directory(state_directory()))
        queue = backend.queue_state()  # first: a scheduler that hangs is waited for once
        rules = site_rules(config, backend, limits_of(config, backend), float(config.pad))
        return slots_views(name, queue, rules, task)
    except SchedulerError as error:
        return [unread(name, str(error))]
