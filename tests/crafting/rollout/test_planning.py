"""The compiled plan is that of the other heuristics."""

from __future__ import annotations

import math

from hypothesis import given

from adaptor.crafting.availability import schedule
from adaptor.crafting.rollout.kernel import NEVER
from adaptor.crafting.rollout.planning import planned, without
from adaptor.model import PendingJob, QueueState
from tests.crafting.crafting_strategies import queues
from tests.examples import examples


@examples(200)
@given(queues(planned=True))
def test_the_compiled_plan_is_that_of_the_other_heuristics(queue: QueueState) -> None:
    by_core, compiled = schedule(queue), planned(queue)
    steps = [(time - queue.now, free) for time, free in by_core.profile.steps()]
    assert [(time, int(free)) for time, free in compiled.profile.T.tolist()] == steps
    told = {id: math.inf if start >= NEVER else start + queue.now for id, start in compiled.starts.items()}
    assert told == by_core.starts


def test_those_that_stay_are_planned_anew_in_their_order() -> None:
    first, second = PendingJob("1", 4, 100.0, 50.0), PendingJob("2", 4, 100.0, 150.0)
    queue = QueueState(now=0.0, processors=4, pending=(first, second))
    assert planned(queue).starts == {"1": 50.0, "2": 150.0}
    assert planned(without(queue, {"1"})).starts == {"2": 0.0}
