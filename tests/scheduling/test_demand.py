"""What the bags ask of several sites, and what one site's runtimes say to another."""

from __future__ import annotations

import math

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.crafting.situation import Threat
from adaptor.guard_rails import TimeLimit
from adaptor.model import AttemptOutcome
from adaptor.protocol.messages import AttemptKey, Ending, Hello, Report, Result
from adaptor.runtimes.known import EarlierTasks
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.state import SiteTerms

TERMS = SiteTerms(initial_tr=3600.0, growth_factor=2, longest=36_000.0)


def broker(*bags: Bag) -> Broker:
    made = Broker({"near": TERMS, "far": TERMS})
    for bag in bags:
        bag.fill()
        made.add_bag(bag, now=0.0)
    return made


def bag(id: int, tasks: int, *sites: str, cpus: int = 1) -> Bag:
    spec = BagSpec(name="b", cwd="/", output="/out", environment={}, cpus=cpus, sites=sites)
    return Bag(id, spec, tasks)


def test_the_time_that_the_user_expects_is_the_first_estimate() -> None:
    expecting = bag(1, 3)
    expecting.spec = msgspec.structs.replace(expecting.spec, time=600.0)
    made = broker(expecting)
    (demand,) = made.demands("near")
    assert (demand.runtime, demand.shortest) == (600.0, 600.0)
    (key,) = work(made, "first", "near", processors=1)
    finish(made, "first", key, wall=40.0)
    (demand,) = made.demands("near")
    assert demand.runtime == 40.0


def test_no_task_needs_more_than_its_time_out() -> None:
    limited = bag(1, 3)
    limited.spec = msgspec.structs.replace(limited.spec, timeout=TimeLimit(seconds=300.0))
    (demand,) = broker(limited).demands("near")
    assert (demand.runtime, demand.shortest, demand.times.ended_after) == (300.0, 300.0, 300.0)
    (both,) = broker(limited, bag(2, 3)).demands("near")
    assert (both.runtime, both.times.ended_after) == (3600.0, math.inf)


def test_where_no_task_waits_those_that_a_pilot_may_cut_are_told() -> None:
    made = broker(bag(1, 4))
    *others, last = work(made, "short", "near", processors=4)
    for key, seconds in zip(others, (10.0, 20.0, 30.0), strict=True):
        finish(made, "short", key, wall=seconds)
    made.state.workers["short"].held[last].started = 0.0
    made.state.workers["short"].deadline = 100.0
    (demand,) = made.demands("near", 50.0)
    assert (demand.waiting, demand.threat) == (0, Threat(tasks=1, enough=1.2 * (100.0 - TERMS.last)))
    assert made.sharers("near", demand) == {1: 1.0}
    assert [each.threat for each in made.demands("far", 50.0)] == [Threat()]
    made.state.workers["short"].deadline = 1e6
    assert made.demands("near", 50.0)[0].threat == Threat(), "twenty thousand times as long as any other"


EARLIER = EarlierTasks(kind="fit.py", tasks=12, mean=60.0, factor=2.0, low=50.0, high=70.0)


def test_earlier_bags_of_the_kind_are_the_first_estimate_where_the_user_says_nothing() -> None:
    known = bag(1, 3)
    known.earlier = {"near": EARLIER}
    made = broker(known)
    assert [made.demands(site)[0].runtime for site in ("near", "far")] == [70.0, 3600.0]
    assert made.demands("near")[0].times.earlier == EARLIER
    made.state.set_longest("near", 60.0)
    assert made.demands("near")[0].runtime == 60.0
    made.state.set_longest("near", 36_000.0)
    assert made.demands("near")[0].runtime == 70.0, "a corrected limit leaves what is assumed"
    made.state.know_earlier(known, {"near": msgspec.structs.replace(EARLIER, high=80.0)})
    assert made.demands("near")[0].runtime == 80.0
    (key,) = work(made, "first", "near", processors=1)
    finish(made, "first", key, wall=40.0)
    assert made.demands("near")[0].runtime == 40.0


def test_bags_that_share_pilots_are_known_if_all_that_wait_are() -> None:
    one, other = bag(1, 3), bag(2, 3)
    one.earlier = {"near": EARLIER}
    made = broker(one, other)
    (demand,) = made.demands("near")
    assert (demand.runtime, demand.times.earlier) == (3600.0, None)
    longer = msgspec.structs.replace(EARLIER, mean=600.0, high=3600.0)
    made.state.know_earlier(other, {"near": longer})
    (demand,) = made.demands("near")
    assert (demand.runtime, demand.times.earlier) == (3600.0, longer)


def work(made: Broker, worker: str, site: str, processors: int) -> list[AttemptKey]:
    """A worker comes and asks for work; what it is given."""
    hello = Hello(
        pilot=1, node=worker, pid=1, version="test", processors=processors, memory=1 << 30, deadline=1e9
    )  # fmt: skip
    made.hello(worker, hello, site, now=0.0)
    made.report(worker, Report(free_processors=processors, free_memory=1 << 30), now=0.0)
    return [lease.key for lease in made.drain()[1][worker].leases]


def finish(made: Broker, worker: str, key: AttemptKey, wall: float) -> None:
    result = Result(key=key, ending=Ending.EXITED, exit_code=0, started=1.0, wall=wall)
    made.report(worker, Report(results=[result], free_processors=0, free_memory=0), now=wall)


def test_bags_are_grouped_by_shape_and_sites() -> None:
    made = broker(bag(1, 10), bag(2, 20), bag(3, 5, "far"), bag(4, 3, cpus=4))
    found = {(group.waiting, tuple(group.at)) for group in made.groups()}
    assert found == {(30, ("near", "far")), (5, ("far",)), (3, ("near", "far"))}


def test_each_site_counts_the_tasks_that_run_there() -> None:
    made = broker(bag(1, 10, cpus=2))
    work(made, "worker", "far", processors=6)
    (group,) = made.groups()
    assert group.waiting == 7
    assert group.held == {"near": 0, "far": 3}
    assert {demand.running for demand in (*group.at.values(), *made.demands("near"))} == {3}, "at any site"


def test_what_is_known_at_one_site_stands_in_for_the_default_at_another() -> None:
    made = broker(bag(1, 10))
    first, second = work(made, "worker", "far", processors=2)
    finish(made, "worker", first, 20.0)
    assert [made.demands(site)[0].runtime for site in ("near", "far")] == [20.0, 20.0]
    (here, *_) = work(made, "here", "near", processors=1)
    finish(made, "here", here, 5.0)
    finish(made, "worker", second, 30.0)
    assert [made.demands(site)[0].runtime for site in ("near", "far")] == [5.0, 30.0], "each knows its own"


def test_a_limit_that_is_corrected_leaves_what_was_taken_over() -> None:
    made = broker(bag(1, 10))
    (first,) = work(made, "worker", "far", processors=1)
    finish(made, "worker", first, 20.0)
    made.state.set_longest("near", 600.0)
    assert made.demands("near")[0].runtime == 20.0


def lose(made: Broker, *workers: str) -> None:
    """Each comes, gets what it can, and dies."""
    for worker in workers:
        work(made, worker, "near", processors=2)
        made.lost(worker, AttemptOutcome.LOST, at=1.0, now=1.0)


def test_tasks_that_must_run_alone_are_wanted_after_all_others_and_one_at_a_time() -> None:
    made = broker(bag(1, 3), bag(2, 1, cpus=2))
    lose(made, "first")
    (narrow, _) = made.demands("near")
    assert (narrow.waiting, narrow.alone) == (3, False), "once is no reason to be alone"
    made = broker(bag(1, 2))
    lose(made, "first", "second")
    assert [(demand.waiting, demand.alone) for demand in made.demands("near")] == [(2, True)]
    (group,) = made.groups()
    assert (group.waiting, group.at["near"].alone) == (2, True)
    assert made.sharers("near", made.demands("near")[0]) == {1: 2.0}
    late = bag(2, 5)
    late.fill()
    made.add_bag(late, now=2.0)
    (demand,) = made.demands("near")
    assert (demand.waiting, demand.alone) == (5, False)
    assert made.groups()[0].waiting == 5
    assert made.sharers("near", demand) == {2: 5.0}


def test_a_worker_that_runs_a_suspect_has_nothing_for_others() -> None:
    made = broker(bag(1, 1))
    lose(made, "first", "second")
    work(made, "third", "near", processors=8)
    assert made.state.workers["third"].open_processors == 1
