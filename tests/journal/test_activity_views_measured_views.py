"""What is advised rests on the tasks that had what their bag says."""

from __future__ import annotations

import pytest

from adaptor.api import MeasuredView, TaskInput, Totals
from adaptor.errors import UsageError
from adaptor.journal.activity_views import measured
from adaptor.resources import OwnNeeds
from tests.scheduling.broker_world import World

TOTALS = Totals(requests=1, paid=0.0, used=0.0, wasted=0.0, turnaround=None, first_result=None)


def after(world: World, *tasks: TaskInput) -> MeasuredView:
    """Of a bag of these tasks, each of which has taken ten seconds longer than the one before."""
    bag = world.open()
    world.append(bag, "a", tasks)
    player = world.join("w", processors=1)
    for number in range(len(tasks)):
        world.finish(player, took=10.0 * (number + 1))
    return measured(world.journal.connection, bag, TOTALS)


def test_all_tasks_of_a_bag_of_one_size_count(world: World) -> None:
    seen = after(world, TaskInput("x"), TaskInput("x"))
    assert (seen.done, seen.wall, seen.longest, seen.first_tr) == (2, 30.0, 20.0, 10_000.0)


def test_tasks_with_needs_of_their_own_do_not(world: World) -> None:
    seen = after(world, TaskInput("x"), TaskInput("x", needs=OwnNeeds(time=5.0)), TaskInput("x"))
    assert (seen.done, seen.wall, seen.longest) == (2, 40.0, 30.0)
    assert seen.first_tr is None, "it was not the bag that the first request was for"


def test_an_unknown_bag(world: World) -> None:
    with pytest.raises(UsageError, match="there is no bag 9"):
        measured(world.journal.connection, 9, TOTALS)
