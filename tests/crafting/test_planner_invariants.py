"""What holds in every planning step, alone and one after the other."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, PilotView, SiteState, SubmitRequest, Withdraw, Withhold
from adaptor.model import PendingJob, PilotState, RunningJob
from tests.examples import examples

from .planner_views import views


def check(view: SiteState) -> None:
    decisions = plan(view)
    limits = view.rules.limits
    issued = [each for each in decisions if isinstance(each, SubmitRequest)]
    assert not issued or len(issued) + len(view.requests) <= limits.max_pending_requests
    for each in issued:
        assert view.queue is not None
        assert 0 < each.crafted.request.p <= limits.max_proc
        assert 0 < each.crafted.request.tr <= limits.max_tr
        assert 0 < each.crafted.tasks <= each.demand.waiting
        assert each.demand in view.demands
    withdrawn = [each.pilot for each in decisions if isinstance(each, Withdraw)]
    queued = [pilot.id for pilot in view.requests if pilot.state is PilotState.QUEUED]
    assert set(withdrawn) <= set(queued)
    assert len(set(withdrawn)) == len(withdrawn)
    if any(demand.waiting for demand in view.demands):
        assert issued or withdrawn or any(isinstance(each, Withhold) for each in decisions)
    else:
        assert not issued
        may_be_cut = view.heuristic == "completion" and any(demand.running for demand in view.demands)
        assert withdrawn == queued or may_be_cut  # by the ends of their pilots: then a queued request stays


@examples(300)
@given(views())
def test_limits_and_reasons_hold(view: SiteState) -> None:
    check(view)


@examples(150)
@given(views(heuristics=("completion",)))
def test_limits_and_reasons_hold_for_sets_of_requests(view: SiteState) -> None:
    check(view)
    for _ in range(2 * view.rules.limits.max_pending_requests + 2):
        if not any(isinstance(each, (SubmitRequest, Withdraw)) for each in plan(view)):
            return
        view = acted(view)
    raise AssertionError(plan(view))


def acted(view: SiteState) -> SiteState:
    """The site after the decisions were carried out, and nothing else happened."""
    decisions = plan(view)
    gone = {each.pilot for each in decisions if isinstance(each, Withdraw)}
    issued = [each.crafted.request for each in decisions if isinstance(each, SubmitRequest)]
    fresh = max((pilot.id for pilot in view.requests), default=0) + 1
    new = [
        PilotView(id=fresh + index, state=PilotState.QUEUED, request=request)
        for index, request in enumerate(issued)
    ]
    pilots = [pilot for pilot in view.requests if pilot.id not in gone] + new
    queue = view.queue and msgspec.structs.replace(
        view.queue,
        pending=(*view.queue.pending, *(PendingJob(f"ours{p.id}", p.request.p, p.request.tr) for p in new)),
    )
    return msgspec.structs.replace(view, requests=tuple(pilots), queue=queue)


@examples(300)
@given(views())
def test_what_was_just_issued_is_not_withdrawn_in_the_next_step(view: SiteState) -> None:
    """With one demand; several may settle differently once a pilot is there that serves them all."""
    view = msgspec.structs.replace(view, demands=view.demands[:1])
    before = {pilot.id for pilot in view.requests}
    for decision in plan(acted(view)):
        assert not isinstance(decision, Withdraw) or decision.pilot in before


@examples(300)
@given(views())
def test_the_number_of_steps_until_nothing_more_is_done_is_small(view: SiteState) -> None:
    """No request is issued and withdrawn for ever while nothing else changes."""
    for _ in range(2 * view.rules.limits.max_pending_requests + 2):
        if not any(isinstance(each, (SubmitRequest, Withdraw)) for each in plan(view)):
            return
        view = acted(view)
    raise AssertionError(plan(view))


FATES = st.lists(st.sampled_from(["stays", "starts", "ends"]), min_size=5, max_size=5)


def fated(view: SiteState, fates: list[str], waiting: int, seconds: int) -> SiteState:
    """The site some time later: pilots started or ended, tasks came or went."""
    now = view.now + seconds
    pilots = []
    for pilot, fate in zip(view.requests, fates, strict=False):
        if fate == "starts" and pilot.state is not PilotState.RUNNING:
            pilot = msgspec.structs.replace(
                pilot, state=PilotState.RUNNING, started=now, ends=now + pilot.request.tr
            )
        if fate != "ends":
            pilots.append(pilot)
    queue = view.queue and msgspec.structs.replace(
        view.queue,
        now=now,
        running=tuple(
            RunningJob(f"ours{pilot.id}", pilot.request.p, pilot.ends or now)
            for pilot in pilots
            if pilot.state is PilotState.RUNNING
        ),
        pending=(),
    )
    demands = tuple(
        Demand(waiting=waiting, running=demand.running, runtime=demand.runtime,
               task=demand.task)
        for demand in view.demands
    )  # fmt: skip
    return msgspec.structs.replace(view, now=now, requests=tuple(pilots), queue=queue, demands=demands)


@examples(150)
@given(views(), st.lists(st.tuples(FATES, st.integers(0, 30), st.integers(0, 40)), max_size=8))
def test_the_limits_hold_step_after_step(view: SiteState, future: list[tuple[list[str], int, int]]) -> None:
    for fates, waiting, seconds in future:
        check(view)
        view = acted(view)
        assert len(view.requests) <= view.rules.limits.max_pending_requests
        view = fated(view, fates, waiting, seconds)
    check(view)
