"""Bags that pay for themselves run in their own pilots, and nobody else does."""

from __future__ import annotations

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.crafting.coverage import coverage
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState
from adaptor.model import Limits, PilotState, Request
from adaptor.protocol.messages import Hello, Report
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.state import Meter, SiteTerms


def broker_with(*bags: int, alone: tuple[int, ...] = ()) -> Broker:
    broker = Broker({"s": SiteTerms(initial_tr=10, growth_factor=2, longest=100)})
    for number in bags:
        bag = Bag(number, BagSpec(name="b", cwd="/", output="/o", environment={}), 10)
        bag.fill()
        if number in alone:
            broker.keep_apart(number)
        broker.add_bag(bag, 0.0)
    return broker


def leased_in(broker: Broker, pilot: int) -> set[int]:
    """The bags whose tasks a new worker of a pilot is given."""
    hello = Hello(pilot=pilot, node="n", processors=20, memory=1, deadline=1e9, pid=1, version="1")
    broker.hello(f"w{pilot}", hello, "s", 0.0)
    report = Report(free_processors=20, free_memory=1, queued=0)
    broker.report(f"w{pilot}", report, 0.0)
    return {key.bag for key in broker.state.workers[f"w{pilot}"].held}


def test_a_pilot_serves_its_own_bag_or_those_that_have_none() -> None:
    broker = broker_with(1, 2, 3, alone=(2, 3))
    broker.own_pilot(7, 2)
    assert leased_in(broker, 6) == {1}
    assert leased_in(broker, 7) == {2}


def test_a_worker_of_another_bag_s_pilot_has_nothing_left_to_do() -> None:
    broker = broker_with(1, 2, alone=(2,))
    broker.own_pilot(7, 2)
    assert broker.has_work_in(7, "s")
    broker.cancel(2)
    assert not broker.has_work_in(7, "s")
    assert broker.has_work_in(6, "s")


def test_workers_are_told_until_when_their_pilot_is_paid_for() -> None:
    broker = broker_with(1, alone=(1,))
    broker.own_pilot(7, 1)
    meter = Meter(started=0.0, unit=1.0, spare=60.0, unpaid=600.0)
    broker.meter(7, meter)
    leased_in(broker, 7)
    assert broker.drain()[1]["w7"].unpaid == 600.0, "one that calls"
    broker.meter(7, msgspec.structs.replace(meter, started=5.0))
    assert "w7" not in broker.drain()[1]
    broker.meter(7, msgspec.structs.replace(meter, unpaid=0.0))
    assert broker.drain()[1]["w7"].unpaid == 0.0, "more was paid"


def test_a_bag_that_is_to_be_cheap_is_apart_again_when_it_is_retried_after_a_restart() -> None:
    broker = broker_with(1)
    spec = BagSpec(name="b", cwd="/", output="/o", environment={}, prefer="cheap")
    ended = Bag(2, spec, 1)
    ended.restore([(0, "failed", 1, 1)])
    assert broker.retry(ended, 0.0) == 1
    assert leased_in(broker, 6) == {1}
    broker.own_pilot(7, 2)
    assert leased_in(broker, 7) == {2}


def test_each_has_a_demand_of_its_own() -> None:
    broker = broker_with(1, 2, 3, 4, alone=(2,))
    demands = {demand.bag: demand.waiting for demand in broker.demands("s")}
    assert demands == {None: 30, 2: 10}
    assert broker.sharers("s", Demand(runtime=10)) == {1: 10, 3: 10, 4: 10}
    assert broker.sharers("s", Demand(runtime=10, bag=2)) == {2: 10}
    assert {group.at["s"].bag for group in broker.groups()} == {None, 2}


def test_pilots_cover_their_own_bag_only() -> None:
    rules = SiteRules(limits=Limits(max_pending_requests=9, max_proc=9, max_tr=100))
    mine = PilotView(id=1, state=PilotState.QUEUED, request=Request(4, 10), bag=2)
    ours = PilotView(id=2, state=PilotState.QUEUED, request=Request(3, 10))
    demands = (Demand(waiting=10, runtime=10, bag=2), Demand(waiting=10, runtime=10))
    view = SiteState(
        now=0, queue=None, rules=rules, heuristic="static", requests=(mine, ours), demands=demands
    )
    found = coverage(view)
    assert found.uncovered == [6, 7]
    assert found.needless == []
    alone = SiteState(
        now=0, queue=None, rules=rules, heuristic="static", requests=(mine,), demands=demands[1:]
    )
    assert coverage(alone).needless == [1]
