"""Which bags take turns with another one in its pilots."""

from __future__ import annotations

import math

import pytest

from adaptor.bag_spec import BagSpec
from adaptor.forecast.other_bags import OtherBags
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.facts import other_bags
from adaptor.scheduling.state import SiteTerms


@pytest.mark.parametrize(
    ("cpus", "priority", "others"),
    [
        (1, 0, OtherBags(older=(7, 5))),
        (2, 0, OtherBags(older=(5,))),  # a task on two processors finds no room in pilots for one
        (4, 0, OtherBags()),
        (1, -1, OtherBags(first=12)),
        (1, 1, OtherBags()),
    ],
)
def test_only_bags_in_whose_pilots_its_tasks_run_are_served_before_it(
    cpus: int, priority: int, others: OtherBags
) -> None:
    broker = Broker({"site": SiteTerms(initial_tr=60.0, growth_factor=2, longest=600.0)})

    def spec(cpus: int, priority: int = 0) -> BagSpec:
        return BagSpec(name="b", cwd="/", output="/o", environment={}, cpus=cpus, priority=priority)

    for number, (tasks, size) in enumerate([(7, 1), (5, 2)], start=1):
        bag = Bag(number, spec(size), tasks)
        bag.fill()
        broker.add_bag(bag, 0.0)
    assert other_bags(broker.state, spec(cpus, priority), math.inf) == others
