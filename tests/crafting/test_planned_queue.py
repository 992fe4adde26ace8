"""What replay tells the crafting code in short: a whole plan, and sums of runtimes."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import PlannedQueue, schedule
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import SiteState
from adaptor.model import QueueState
from adaptor.runtimes.learner import RuntimeLearner

from .crafting_strategies import queues
from .planner_views import views


def in_short(queue: QueueState, told: int) -> PlannedQueue:
    """The first jobs of the queue as a plan, the others one by one."""
    first = msgspec.structs.replace(queue, pending=queue.pending[:told])
    return PlannedQueue(
        now=queue.now,
        processors=queue.processors,
        plan=tuple(schedule(first).profile.steps()),
        pending=queue.pending[told:],
    )


@given(queues(planned=False), st.integers(0, 10))
def test_a_plan_says_the_same_as_the_jobs_that_it_holds(queue: QueueState, told: int) -> None:
    whole, short = schedule(queue), schedule(in_short(queue, told))
    assert short.profile.steps() == whole.profile.steps()
    assert short.starts == {job.id: whole.starts[job.id] for job in queue.pending[told:]}


@given(views())
def test_the_planner_decides_the_same(view: SiteState) -> None:
    if view.queue is not None:
        short = in_short(view.queue, len(view.queue.pending))
        assert plan(msgspec.structs.replace(view, queue=short)) == plan(view)


runtimes = st.lists(st.integers(1, 1000), min_size=1, max_size=20)


@given(runtimes, runtimes, st.dictionaries(st.integers(0, 5), st.integers(1, 500)))
def test_runtimes_learned_together_are_those_learned_one_by_one(
    before: list[int], after: list[int], cuts: dict[int, int]
) -> None:
    single, together = (RuntimeLearner(initial=60, factor=2, longest=700) for _ in range(2))
    for learner in (single, together):
        for runtime in before:
            learner.finished(runtime)
        for task, ran in cuts.items():
            learner.cut(task, ran)
    for runtime in after:
        single.finished(runtime)
    together.seen.add_all(len(after), sum(after), sum(each * each for each in after), max(after))
    assert together == single
    assert together.estimate == single.estimate
    for task in cuts:
        assert together.estimate_of(task) == max(together.estimate, together.needed_by(task))
