"""Strategies of the crafting tests: small sites with whole seconds, so that a reference can count them."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.places import CraftingSituation
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import Limits, PendingJob, QueueState, RunningJob
from adaptor.resources import TaskSize

HORIZON = 60
"""Seconds after which drawn profiles change no more."""

Hold = tuple[int, int, int]
"""`(start, duration, processors)`."""


@st.composite
def holds(draw: st.DrawFn) -> list[Hold]:
    one = st.tuples(st.integers(0, HORIZON - 20), st.integers(1, 20), st.integers(1, 8))
    return draw(st.lists(one, max_size=10))


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    processors = draw(st.integers(0, 20))
    return Profile.holding(0, processors, [(start, start + long, p) for start, long, p in draw(holds())])


@st.composite
def queues(draw: st.DrawFn, planned: bool = False) -> QueueState:
    """A consistent queue: running jobs fit into the site; pending ones may be planned (anyhow)."""
    processors = draw(st.integers(1, 12))
    now = draw(st.sampled_from([0, 1000]))
    running, free = [], processors
    for index in range(draw(st.integers(0, 5))):
        if free:
            p = draw(st.integers(1, free))
            free -= p
            end = draw(st.one_of(st.integers(1, 30), st.just(math.inf)))
            running.append(RunningJob(f"r{index}", p, now + end))
    starts = st.none() if not planned else st.one_of(st.none(), st.integers(now - 5, now + 30))
    pending = [
        PendingJob(
            f"p{index}", draw(st.integers(1, 14)), draw(st.one_of(st.integers(1, 20), st.just(math.inf))),
            draw(starts),
        )
        for index in range(draw(st.integers(0, 6)))
    ]  # fmt: skip
    return QueueState(now=now, processors=processors, running=tuple(running), pending=tuple(pending))


@st.composite
def rules(draw: st.DrawFn) -> SiteRules:
    return SiteRules(
        limits=Limits(
            max_pending_requests=draw(st.integers(1, 5)),
            max_proc=draw(st.integers(1, 12)),
            max_tr=draw(st.integers(1, 60)),
        ),
        time_resolution=draw(st.sampled_from([1, 2, 5])),
        slot_margin=draw(st.integers(0, 3)),
        pad=draw(st.sampled_from([0.0, 0.5, 2.0])),
        granularity=draw(st.sampled_from([1, 1, 2, 4])),
    )


@st.composite
def situations(draw: st.DrawFn, planned: bool = False) -> CraftingSituation:
    site, queue = draw(rules()), draw(queues(planned))
    demand = Demand(runtime=draw(st.floats(0.1, 40)), task=TaskSize(processors=draw(st.integers(1, 4))))
    return CraftingSituation(
        free=Availability(queue),
        shape=RequestShape.for_demand(site, queue, demand),
        allowed_requests=draw(st.integers(0, site.limits.max_pending_requests)),
        remaining_tasks=draw(st.integers(0, 60)),
    )
