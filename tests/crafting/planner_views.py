"""Short ways to write down what a planner sees, and random ones."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState
from adaptor.model import Limits, PilotState, QueueState, Request
from adaptor.resources import TaskSize

from .crafting_strategies import queues, rules

RULES = SiteRules(
    limits=Limits(max_pending_requests=3, max_proc=8, max_tr=3600), time_resolution=60, pad=30.0
)


def tasks(waiting: int, running: int = 0, runtime: float = 60.0, cpus: int = 1) -> Demand:
    return Demand(waiting=waiting, running=running, runtime=runtime, task=TaskSize(processors=cpus))


def queued(id: int, p: int, tr: int = 3600) -> PilotView:
    return PilotView(id=id, state=PilotState.QUEUED, request=Request(p, tr))


def running(id: int, p: int, left: float, workers: int | None = None) -> PilotView:
    """A running pilot that ends so many seconds after 1000, which is now."""
    return PilotView(
        id=id, state=PilotState.RUNNING, request=Request(p, 3600), started=1000 + left - 3600,
        ends=1000 + left, processors=workers,
    )  # fmt: skip


def site(
    *demands: Demand, pilots: tuple[PilotView, ...] = (), rules: SiteRules = RULES,
    heuristic: str = "adaptive", processors: int | None = 64,
) -> SiteState:  # fmt: skip
    """An idle site of so many processors; None: its scheduler does not answer."""
    queue = None if processors is None else QueueState(now=1000, processors=processors)
    return SiteState(
        now=1000, queue=queue, rules=rules, heuristic=heuristic, requests=pilots, demands=demands
    )


@st.composite
def views(draw: st.DrawFn, heuristics: tuple[str, ...] = ("static", "adaptive")) -> SiteState:
    site_rules, queue = draw(rules()), draw(queues(planned=True))
    limits, states = site_rules.limits, [PilotState.SUBMITTING, PilotState.QUEUED, PilotState.RUNNING]
    pilots = []
    for id in range(draw(st.integers(0, limits.max_pending_requests))):
        request = Request(draw(st.integers(1, limits.max_proc)), draw(st.integers(1, limits.max_tr)))
        pilot = PilotView(id=id, state=draw(st.sampled_from(states)), request=request)
        if pilot.state is PilotState.RUNNING:
            started = queue.now - draw(st.integers(0, request.tr))
            there = draw(st.one_of(st.none(), st.integers(0, request.p)))
            pilot = msgspec.structs.replace(
                pilot, started=started, ends=started + request.tr, processors=there
            )
        pilots.append(pilot)
    demand = st.builds(
        Demand, task=st.builds(TaskSize, processors=st.integers(1, 4)), waiting=st.integers(0, 30),
        running=st.integers(0, 8), runtime=st.floats(0.5, 40),
    )  # fmt: skip
    return SiteState(
        now=queue.now,
        queue=draw(st.one_of(st.just(queue), st.none())) if draw(st.integers(0, 5)) == 0 else queue,
        rules=site_rules,
        heuristic=draw(st.sampled_from(heuristics)),
        requests=tuple(pilots),
        demands=tuple(draw(st.lists(demand, max_size=3))),
    )
