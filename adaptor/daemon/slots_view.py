"""The free slots of a queue as a user is shown them. Pure."""

from __future__ import annotations

import math

from adaptor.config.schema import SiteConfig
from adaptor.crafting.availability import availability
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import SiteRules
from adaptor.daemon.sites import limits_of, make_backend
from adaptor.model import FreeSlot, QueueState
from adaptor.protocol.state_directory import private_directory, state_directory
from adaptor.views import FreeStep, SlotsView, SlotView
from backends.base import SchedulerError
from backends.rules import site_rules


def slots_view(site: str, queue: QueueState, rules: SiteRules) -> SlotsView:
    """The holes of a queue: all maximal free slots, with the largest request that each one takes.

    This is what Maui and Moab call `showbf`, and what a user of Slurm or PBS has no command for.
    """
    free = availability(queue)
    return SlotsView(
        site=site,
        observed=queue.now,
        processors=queue.processors,
        free=[FreeStep(time, processors) for time, processors in free.steps()],
        slots=[_slot(slot, queue.processors, rules) for slot in free.free_slots()],
        problem="",
    )


def unread(site: str, problem: str) -> SlotsView:
    """A site whose queue could not be read."""
    return SlotsView(site=site, observed=None, processors=0, free=[], slots=[], problem=problem)


def _slot(slot: FreeSlot, processors: int, rules: SiteRules) -> SlotView:
    shape = RequestShape(rules=rules, site_processors=processors, processors_per_task=1, runtime=1.0)
    p, tr = min(shape.widest, shape.fit(slot.processors)), shape.longest_tr(slot.duration)
    fits = p > 0 and tr > rules.pad
    return SlotView(
        start=slot.start,
        end=None if math.isinf(slot.duration) else slot.end,
        processors=slot.processors,
        p=p if fits else None,
        tr=tr if fits else None,
    )


def read_site(name: str, config: SiteConfig) -> SlotsView:
    """The free slots of a site's queue, read now; one that does not answer has a problem instead."""
    try:
        backend = make_backend(name, config, private_directory(state_directory()))
        queue = backend.queue_state()  # first: a scheduler that hangs is waited for once
        rules = site_rules(config, backend, limits_of(config, backend), float(config.pad))
        return slots_view(name, queue, rules)
    except SchedulerError as error:
        return unread(name, str(error))
