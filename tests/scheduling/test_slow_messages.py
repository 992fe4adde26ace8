"""Where messages take seconds: more is held in reserve, and what is on its way is not taken for lost."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.bag_spec import BagSpec
from adaptor.protocol.messages import AttemptKey, Ending, Hello, Report, Result
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import LEASE_TIMEOUT, Broker
from tests.scheduling.broker_world import TERMS

SPEC = BagSpec(name="b", cwd="/", output="/o", environment={}, canary="no")


def broker_of(latency: float, tasks: int, workers: int = 1) -> Broker:
    """With idle workers of one processor each, and a mean runtime of 1 s."""
    broker = Broker({"here": msgspec.structs.replace(TERMS, latency=latency)})
    bag = Bag(1, SPEC, tasks)
    bag.fill()
    broker.add_bag(bag, 0.0)
    broker.state.learner(1, "here").finished(1.0)
    for number in range(workers):
        hello = Hello(
            pilot=1, node=f"n{number}", pid=1, version="t", processors=1, memory=1 << 30, deadline=1e9
        )
        broker.hello(f"w{number}", hello, "here", 0.0)
    return broker


def report(broker: Broker, worker: str, now: float, **more: object) -> list[AttemptKey]:
    """The leases that a report is answered with."""
    broker.report(worker, Report(free_memory=1 << 30, **more), now)  # type: ignore[arg-type]
    _, drafts = broker.drain()
    return [lease.key for lease in drafts[worker].leases]


def test_the_reserve_lasts_while_messages_are_on_their_way() -> None:
    assert len(report(broker_of(0.0, 1000), "w0", 1.0, free_processors=1)) == 2
    assert len(report(broker_of(5.0, 1000), "w0", 1.0, free_processors=1)) == 1 + 11


@pytest.mark.parametrize(("latency", "asked"), [(0.0, True), (5.0, False)])
def test_a_lease_on_its_way_is_not_asked_about(latency: float, asked: bool) -> None:
    broker = broker_of(latency, 3)
    (first, *rest) = report(broker, "w0", 1.0, free_processors=1)
    assert rest
    broker.report("w0", Report(load=[(first, 20.0)]), 1.0 + LEASE_TIMEOUT + 5.0)
    _, drafts = broker.drain()
    assert drafts["w0"].say_hello is asked


def test_a_lease_that_was_lost_is_asked_about_in_the_end() -> None:
    broker = broker_of(5.0, 3)
    first, *_ = report(broker, "w0", 1.0, free_processors=1)
    broker.report("w0", Report(load=[(first, 200.0)]), 200.0)
    _, drafts = broker.drain()
    assert drafts["w0"].say_hello


@pytest.mark.parametrize(("latency", "replicated"), [(0.0, True), (5.0, False)])
def test_a_result_on_its_way_makes_no_straggler(latency: float, replicated: bool) -> None:
    broker = broker_of(latency, 2, workers=2)
    (one,) = report(broker, "w0", 1.0, free_processors=1)
    (two,) = report(broker, "w1", 1.0, free_processors=1)
    report(broker, "w0", 1.0, started=[one])
    report(broker, "w1", 1.0, started=[two])
    done = Result(key=one, ending=Ending.EXITED, started=1.0, wall=1.0, exit_code=0)
    assert bool(report(broker, "w0", 4.0, results=[done], free_processors=1)) is replicated
