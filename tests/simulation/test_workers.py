"""Simulated workers and the broker: bags, sites, messages and ends of every kind."""

from __future__ import annotations

import math

import pytest

from adaptor.bag_spec import BagSpec
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import DonationRules
from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import Leaving
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import AttemptEnd, AttemptStart
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.state import SiteTerms
from adaptor_simulation.worker import Attempt, PilotPlace
from adaptor_simulation.workers import SimulatedWorkers, TaskEnded, WorkerLeft

GIB = 1 << 30


def terms(**changes) -> SiteTerms:
    told = {"initial_tr": 10.0, "growth_factor": 2, "longest": 1000.0, "last": 0.0, "reserve": 0.0}
    return SiteTerms(**told | changes)


def scene(idle_timeout=0.0, heartbeat=math.inf, **sites: SiteTerms) -> SimulatedWorkers:
    sites = sites or {"here": terms()}
    return SimulatedWorkers(
        Broker(sites), idle_timeout=dict.fromkeys(sites, idle_timeout), heartbeat=heartbeat
    )


def bag(tasks: int, id: int = 1, **spec) -> Bag:
    made = Bag(
        id, BagSpec(**{"name": "b", "cwd": "", "output": "", "environment": {}, "replicas": 0} | spec), tasks
    )
    made.fill()
    return made


def pilot(number: int, processors: int = 1, deadline: float = 1000.0, **where) -> PilotPlace:
    return PilotPlace(
        **{"pilot": number, "site": "here", "processors": processors, "deadline": deadline} | where
    )


def takes(seconds: float):
    return lambda _key, _site: Attempt(seconds)


def of(kind, events) -> list:
    return [event for event in events if isinstance(event, kind)]


def starts(events) -> list[tuple[int, float]]:
    return [(event.key.task, event.at) for event in of(AttemptStart, events)]


def test_tasks_run_in_turn_and_the_worker_leaves_when_all_have_ended():
    workers = scene(idle_timeout=60.0)
    workers.add_bag(bag(3), takes(7.0), 0.0)
    workers.start(pilot(1, 2), 0.0)
    events = workers.advance(100.0)
    assert starts(events) == [(0, 0.0), (1, 0.0), (2, 7.0)]
    assert [(end.task, end.at) for end in of(TaskEnded, events)] == [(0, 7.0), (1, 7.0), (2, 14.0)]
    assert of(WorkerLeft, events) == [WorkerLeft(1, "1-node-1", Leaving.TOLD, 14.0)]
    assert not workers.broker.state.bags


def test_nothing_happens_before_its_time():
    workers = scene()
    workers.add_bag(bag(1), takes(7.0), 0.0)
    workers.start(pilot(1), 0.0)
    assert workers.next_event() == 7.0
    assert not of(TaskEnded, workers.advance(6.0))
    assert of(TaskEnded, workers.advance(7.0))


def test_tasks_are_cut_before_the_end_of_the_pilot_and_run_again_where_there_is_more_time():
    workers = scene(here=terms(last=5.0))
    workers.add_bag(bag(1), takes(20.0), 0.0)
    workers.start(pilot(1, deadline=15.0), 0.0)
    events = workers.advance(50.0)
    assert [(end.outcome, end.wall) for end in of(AttemptEnd, events)] == [(AttemptOutcome.WALLTIME, 10.0)]
    assert of(WorkerLeft, events)[0].why is Leaving.TIME_UP
    (demand,) = workers.broker.demands("here")
    assert (demand.waiting, demand.runtime) == (1, 20.0)
    workers.start(pilot(2, deadline=74.0), 50.0)  # 20 s and the last 5 s do not fit
    assert not starts(workers.advance(50.0))
    workers.start(pilot(3, deadline=75.0), 50.0)
    assert of(TaskEnded, workers.advance(75.0))[0].at == 70.0


def test_a_failing_task_is_tried_again_and_fails_in_the_end():
    workers = scene()
    workers.add_bag(bag(2, retries=2), lambda key, _: Attempt(5.0, exit_code=int(key.task == 0)), 0.0)
    workers.start(pilot(1), 0.0)
    ended = of(TaskEnded, workers.advance(100.0))
    assert [(end.task, end.state) for end in ended] == [(1, TaskState.DONE), (0, TaskState.FAILED)]
    assert ended[1].at == 20.0


def test_memory_and_processors_bound_what_runs_together():
    workers = scene()
    workers.add_bag(bag(3, cpus=2, memory=4 * GIB), takes(10.0), 0.0)
    workers.start(pilot(1, 6, memory=8 * GIB), 0.0)
    assert [at for _, at in starts(workers.advance(100.0))] == [0.0, 0.0, 10.0]


def test_two_sites_share_a_bag_and_each_runs_it_at_its_own_speed():
    workers = scene(slow=terms(), fast=terms())
    workers.add_bag(bag(4), lambda _, site: Attempt({"slow": 30.0, "fast": 10.0}[site]), 0.0)
    workers.add_bag(bag(1, id=2, sites=("slow",)), takes(5.0), 0.0)
    workers.start(pilot(1, site="slow"), 0.0)
    workers.start(pilot(2, site="fast"), 0.0)
    events = workers.advance(100.0)
    assert [event.key.bag for event in of(AttemptStart, events) if event.pilot == 1][:2] == [1, 2]
    assert sum(event.pilot == 2 for event in of(AttemptStart, events)) == 3
    assert {event.state for event in of(TaskEnded, events)} == {TaskState.DONE}


def test_bags_take_turns():
    workers = scene()
    for id in (1, 2):
        workers.add_bag(bag(2, id=id), takes(10.0), 0.0)
    workers.start(pilot(1, 2), 0.0)
    assert [event.key.bag for event in of(AttemptStart, workers.advance(100.0))] == [1, 2, 1, 2]


def test_an_idle_worker_waits_and_gets_what_comes():
    workers = scene(idle_timeout=30.0, here=terms(), elsewhere=terms())
    workers.add_bag(bag(2), takes(10.0), 0.0)
    workers.add_bag(bag(1, id=2), takes(500.0), 0.0)
    workers.start(pilot(1), 0.0)
    workers.start(pilot(2, 2), 0.0)
    assert not of(WorkerLeft, workers.advance(20.0))
    workers.add_bag(bag(1, id=3), takes(10.0), 25.0)
    events = workers.advance(100.0)
    assert [(left.pilot, left.at, left.why) for left in of(WorkerLeft, events)] == [(1, 65.0, Leaving.IDLE)]


@pytest.mark.parametrize("told", [True, False])
def test_what_a_pilot_loses_is_run_elsewhere(told):
    """A task that may have ended its worker runs last."""
    workers = scene()
    workers.add_bag(bag(2), takes(50.0), 0.0)
    workers.start(pilot(1), 0.0)
    workers.advance(20.0)
    if told:
        workers.end_pilot(1, 20.0)
    else:
        workers.lose_pilot(1, AttemptOutcome.LOST, 20.0)
    workers.start(pilot(2, 2), 20.0)
    events = workers.advance(200.0)
    ends = {end.task: end.at for end in of(TaskEnded, events)}
    assert ends == ({0: 70.0, 1: 70.0} if told else {1: 70.0, 0: 120.0})
    assert not workers.broker.state.workers


def test_a_task_that_takes_its_pilots_down_is_given_up_and_the_others_are_done():
    workers = scene()
    workers.add_bag(bag(9), takes(10.0), 0.0)
    ends: list[TaskEnded] = []
    pilots, now = 0, 0.0
    while workers.broker.busy:
        pilots += 1
        workers.start(pilot(pilots, 3), now)
        dies = False
        while workers.broker.busy and not dies:
            now += 5.0
            events = workers.advance(now)
            ends += of(TaskEnded, events)
            dies = any(start.key.task == 0 for start in of(AttemptStart, events))
        if dies:
            workers.lose_pilot(pilots, AttemptOutcome.LOST, now)
    ends += of(TaskEnded, workers.advance(now))
    assert {end.task: end.state for end in ends} == {
        task: TaskState.DONE if task else TaskState.FAILED for task in range(9)
    }
    assert pilots <= 4


def test_messages_take_their_time_and_a_reserve_bridges_it():
    def turnaround(reserve: float) -> float:
        workers = scene(idle_timeout=60.0, here=terms(latency=2.0, reserve=reserve))
        workers.add_bag(bag(9), takes(10.0), 0.0)
        workers.start(pilot(1), 0.0)
        return max(end.at for end in of(TaskEnded, workers.advance(500.0)))

    # The first lease takes a round trip; without reserve so does each of the others.
    assert turnaround(0.0) == 4.0 + 9 * 10.0 + 8 * 4.0
    assert 94.0 < turnaround(0.5) < turnaround(0.0)


def test_the_last_task_is_replicated_and_the_first_result_wins():
    workers = scene(idle_timeout=100.0, heartbeat=5.0)

    def behaviour(key, _site):
        return Attempt(900.0 if (key.task, key.attempt) == (39, 1) else 5.0 * (1 + key.task % 8))

    workers.add_bag(bag(40, replicas=1), behaviour, 0.0)
    workers.start(pilot(1, 2), 0.0)
    workers.start(pilot(2, 2), 0.0)
    events = workers.advance(1000.0)
    late = [event for event in of(AttemptStart, events) if event.key.attempt == 2]
    assert [event.key.task for event in late] == [39]
    assert max(end.at for end in of(TaskEnded, events)) < 900.0
    assert [end.outcome for end in of(AttemptEnd, events)].count(AttemptOutcome.SUPERSEDED) <= 1


def test_a_donated_node_is_used_while_it_is_idle_and_its_loss_is_counted():
    workers = scene(here=terms(donation=DonationRules()))
    workers.broker.learn_hazard("here", IdleLearner().hazard)
    held = bag(1, allocation="transparent")
    workers.add_bag(held, takes(50.0), 0.0)
    workers.broker.use_node(7, DonatedNode(since=0.0))
    workers.start(pilot(7), 0.0)
    workers.advance(20.0)
    workers.end_pilot(7, 20.0)
    assert of(AttemptEnd, workers.advance(20.0))[0].outcome is AttemptOutcome.PREEMPTED
    assert held.preempted_of(0).times == 1
