"""What an open bag is expected to get: nothing without evidence, as many again as came with it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.api import TaskInput
from adaptor.scheduling.refilling import Refilling
from tests.scheduling.broker_world import World


def test_as_many_again_as_came_since_the_bag_was_empty() -> None:
    seen = Refilling(most=0)
    seen.append(4, unfinished=0)
    seen.append(64, unfinished=0)  # the first ones have ended
    assert seen.expected(64) == 0, "one burst may be all"
    for _ in range(16):
        seen.append(1, unfinished=63)
    assert seen.expected(64) == 80
    assert seen.expected(20) == 0, "it is no longer refilled"
    seen.append(1, unfinished=0)
    assert seen.expected(1) == 0


@given(st.lists(st.integers(1, 1000), min_size=1), st.data())
def test_what_comes_at_once_tells_nothing(counts: list[int], data: st.DataObject) -> None:
    """However many messages bring it."""
    seen, unfinished = Refilling(most=0), 0
    for count in counts:
        seen.append(count, unfinished)
        unfinished += count
    assert seen.expected(data.draw(st.integers(0, unfinished))) == 0


def test_a_restart_forgets_what_came(world: World) -> None:
    bag = world.open()
    tasks = [TaskInput("true")] * 8
    world.append(bag, "first", tasks)
    player = world.join("w", processors=4)
    for number in range(6):
        world.finish(player)
        world.append(bag, f"more {number}", tasks[:1])
    (demand,) = world.broker.demands("site")
    assert demand.coming == 14
    world.restart()
    (demand,) = world.broker.demands("site")
    assert (demand.waiting > 0, demand.coming) == (True, 0)
