"""Which waiting task a worker gets, among tasks that were cut before and need more time than others."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from adaptor.scheduling.task_needs import seconds_to_start
from tests.scheduling.broker_world import World

SECONDS = st.sampled_from([5.0, 40.0, 60.0, 90.0, 400.0])


@settings(max_examples=60, deadline=None)
@given(
    cuts=st.dictionaries(st.integers(0, 7), SECONDS),
    finished=st.lists(SECONDS, max_size=12),
    preempted=st.dictionaries(st.integers(0, 7), SECONDS, max_size=2),
    checkpointed=st.dictionaries(st.integers(0, 7), SECONDS, max_size=2),
    left=st.sampled_from([30.0, 61.0, 121.0, 500.0, 1000.0]),
)
def test_a_worker_gets_the_first_task_that_ends_in_time(
    cuts: dict[int, float],
    finished: list[float],
    preempted: dict[int, float],
    checkpointed: dict[int, float],
    left: float,
) -> None:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        id = world.submit(8)
        state = world.broker.state
        bag = state.bags[id]
        for wall in finished:
            state.learner(id, "site").finished(wall)
        for task, ran in cuts.items():
            state.cut(bag, "site", task, ran)
        for task, ran in preempted.items():
            bag.preempt(task, ran)
        bag.progress.update(checkpointed)
        odd = len(cuts) + len(preempted)
        needs = [seconds_to_start(state, bag, "site", task) for task in range(min(8, odd + 1))]
        expected = [task for task, seconds in enumerate(needs) if seconds <= left]
        player = world.join("a", time_left=left)
        assert [key.task for key in player.running] == expected[:1]
        world.close()
