"""What holds whatever limits, queues, nodes, pilots and runtimes are: the search ends, within all limits."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.completion.search import AT_ONCE, BESIDE
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import (
    Demand,
    PilotView,
    Reshape,
    SiteRules,
    SiteState,
    SubmitRequest,
    Withdraw,
    Withhold,
)
from adaptor.crafting.submissions import SubmissionsLeft
from adaptor.model import Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.resources import TaskSize
from adaptor.runtimes.known import EarlierTasks, KnownRuntimes
from tests.crafting.crafting_strategies import queues
from tests.crafting.nodes.node_queues import node_queues
from tests.examples import examples
from tests.runtimes.known import known_runtimes

SECONDS = st.sampled_from([0.01, 1.0, 7.0, 60.0, 3600.0, 10_000.0])
"""Six orders of magnitude."""


@st.composite
def times(draw: st.DrawFn, now: float) -> KnownRuntimes:
    """Two kinds in one bag, a kind that runs a thousand times longer today, tasks older than any finished."""
    finished, mean = draw(st.sampled_from([0, 1, 7, 100])), draw(SECONDS)
    kind = EarlierTasks(kind="fit.py", tasks=9, mean=draw(SECONDS), factor=2.0, low=0.01, high=1e6)
    age = draw(st.none() | SECONDS)
    return known_runtimes(
        finished=finished,
        mean=mean if finished else 0.0,
        longest=mean * draw(st.sampled_from([1.0, 1.5, 1000.0])) if finished else 0.0,
        not_enough=draw(st.sampled_from([0.0, 30.0, 1e6])),
        mean_start=None if age is None else now - age,
        first_start=None if age is None else now - 2 * age,
        told=draw(st.none() | SECONDS),
        earlier=draw(st.none() | st.just(kind)),
    )


@st.composite
def bad_sites(draw: st.DrawFn) -> SiteState:
    queue: QueueState = draw(st.one_of(queues(planned=True), node_queues()))
    limits = Limits(
        max_pending_requests=draw(st.sampled_from([1, 2, 20])),
        max_proc=draw(st.sampled_from([1, 3, 10_000])),
        max_tr=draw(st.sampled_from([1, 60, 64_800])),
    )
    pilots = []
    for id in range(draw(st.integers(0, min(4, limits.max_pending_requests)))):
        width = draw(st.integers(1, min(4, limits.max_proc)))
        request = Request(width, draw(st.integers(1, limits.max_tr)))
        ours = PilotView(id=id, job=f"ours{id}", state=PilotState.QUEUED, request=request)
        ours = msgspec.structs.replace(ours, submitted=queue.now - draw(st.sampled_from([0.0, 5000.0])))
        if draw(st.booleans()):
            ends = queue.now + draw(st.sampled_from([-5.0, 0.0, 30.0, 64_800.0]))
            started = queue.now - 1000.0
            ours = msgspec.structs.replace(ours, state=PilotState.RUNNING, started=started, ends=ends)
            queue = msgspec.structs.replace(
                queue, running=(*queue.running, RunningJob(f"ours{id}", width, ends))
            )
        else:
            start = draw(st.none() | st.sampled_from([queue.now - 5.0, queue.now + 3000.0]))
            job = PendingJob(f"ours{id}", width, request.tr, start)
            queue = msgspec.structs.replace(queue, pending=(*queue.pending, job))
        pilots.append(ours)
    shortest = draw(SECONDS)  # perhaps longer than max_tr
    demand = Demand(
        task=TaskSize(processors=draw(st.integers(1, 3)), memory=draw(st.sampled_from([None, 1]))),
        waiting=draw(st.sampled_from([1, 50, 100_000])),
        running=draw(st.sampled_from([0, 3])),
        runtime=shortest * draw(st.sampled_from([1.0, 1000.0])),
        shortest=shortest,
        times=draw(times(queue.now)),
        alone=draw(st.booleans()),
        most=draw(st.sampled_from([math.inf, math.inf, 0, 1, 7])),
        longest=draw(st.sampled_from([None, None, 30])),
    )
    rules = SiteRules(
        limits=limits,
        time_resolution=draw(st.sampled_from([1, 60])),
        slot_margin=draw(st.sampled_from([0, 20])),
        pad=draw(st.sampled_from([0.0, 30.0])),
        may_withdraw=draw(st.booleans()),
        may_reshape=draw(st.booleans()),
    )
    return SiteState(
        now=queue.now,
        queue=queue,
        rules=rules,
        heuristic="completion",
        requests=tuple(pilots),
        demands=(demand,),
        submissions=SubmissionsLeft(draw(st.sampled_from([None, None, 0, 1]))),
    )


def decided(view: SiteState) -> list[SubmitRequest | Withdraw | Reshape | Withhold]:
    """The decisions, which are within all rules of the site."""
    decisions, limits, demand = plan(view), view.rules.limits, view.demands[0]
    assert decisions, "tasks wait: something is done, or said"
    made = [decision for decision in decisions if isinstance(decision, (SubmitRequest, Reshape))]
    issued = [decision for decision in made if isinstance(decision, SubmitRequest)]
    assert len(issued) <= min(view.requests_left, AT_ONCE + BESIDE)
    for decision in made:
        crafted = decision.crafted
        assert 0 < crafted.request.p <= limits.max_proc
        assert 0 < crafted.request.tr <= min(limits.max_tr, demand.longest or limits.max_tr)
        assert 0 < crafted.tasks <= max(1, demand.waiting)
        assert crafted.reason
    if not any(isinstance(decision, Reshape) for decision in made):
        assert sum(decision.crafted.request.p for decision in issued) <= demand.most
    changed = [decision.pilot for decision in decisions if isinstance(decision, (Withdraw, Reshape))]
    assert len(set(changed)) == len(changed)
    assert set(changed) <= {pilot.id for pilot in view.requests}
    for decision in decisions:
        if isinstance(decision, Withdraw) and decision.recraft:
            assert view.rules.may_withdraw
        assert not isinstance(decision, Reshape) or view.rules.may_reshape
    return decisions


@examples(400)
@given(bad_sites())
def test_the_search_ends_and_the_limits_hold(view: SiteState) -> None:
    decided(view)


@pytest.mark.parametrize("seed", range(4))
def test_a_scheduler_that_breaks_its_plan_every_minute(seed: int) -> None:
    """Each minute all planned starts are others; what was asked for a moment ago keeps its place, unless its
    start was due."""
    draw = random.Random(seed)
    limits = Limits(max_pending_requests=3, max_proc=16, max_tr=7200)
    rules = SiteRules(limits=limits, time_resolution=60, may_reshape=seed % 2 == 0)
    known = known_runtimes(finished=10, mean=300.0, longest=300.0)
    demand = Demand(waiting=200, runtime=300.0, shortest=300.0, times=known)
    pilots: dict[int, PilotView] = {}
    number = 0
    for minute in range(30):
        now = 60.0 * minute
        pending = [PendingJob("1", 16, 3600.0, now + draw.uniform(0, 7200))] + [
            PendingJob(pilot.queued_as, pilot.request.p, pilot.request.tr, now + draw.uniform(-60, 20_000))
            for pilot in pilots.values()
        ]
        queue = QueueState(now=now, processors=16, pending=tuple(pending))
        view = SiteState(
            now=now, queue=queue, rules=rules, heuristic="completion", requests=tuple(pilots.values()),
            demands=(demand,),
        )  # fmt: skip
        for decision in decided(view):
            if isinstance(decision, Withdraw):
                assert _may_go(pilots.pop(decision.pilot), now)
            elif isinstance(decision, Reshape):
                before = pilots[decision.pilot]
                assert _may_go(before, now)
                pilots[decision.pilot] = msgspec.structs.replace(
                    before, request=decision.crafted.request, reshaped=now,
                    predicted_start=decision.crafted.predicted_start,
                )  # fmt: skip
            elif isinstance(decision, SubmitRequest):
                number += 1
                pilots[number] = PilotView(
                    id=number, job=f"ours{number}", state=PilotState.QUEUED, submitted=now,
                    request=decision.crafted.request, predicted_start=decision.crafted.predicted_start,
                )  # fmt: skip
        assert len(pilots) <= limits.max_pending_requests
    assert pilots


def _may_go(pilot: PilotView, now: float) -> bool:
    since = pilot.reshaped or pilot.submitted or 0.0
    due = pilot.predicted_start is not None and pilot.predicted_start <= now
    return due or now - since >= 30.0
