"""What a request of one partition takes of the others, and what a queue does not show yet."""

from __future__ import annotations

import msgspec

from adaptor.crafting.availability import PlannedQueue
from adaptor.crafting.places import places_of, with_crafted
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState
from adaptor.model import CraftedRequest, Limits, PendingJob, PilotState, QueueState, Request
from adaptor.resources import Node, TaskSize
from backends.partitions import most_of, together

LIMITS = Limits(max_pending_requests=3, max_proc=8, max_tr=3600)
DEMAND = Demand(waiting=10, runtime=60.0, task=TaskSize(processors=2))


def view(*pilots: PilotView, nodes: dict[str, str] | None = None) -> SiteState:
    """`nodes`: by partition, the names of its nodes of 4 processors; None: they are not known."""
    queues = {
        name: QueueState(
            now=0.0,
            processors=8 if nodes is None else 4 * len(names),
            nodes=() if nodes is None else tuple(Node(name=node, processors=4) for node in names),
        )
        for name, names in (nodes or {"p": "", "q": ""}).items()
    }
    rules = SiteRules(limits=most_of(dict.fromkeys(queues, LIMITS)))
    return SiteState(now=0.0, queue=together(queues), rules=rules, heuristic="adaptive", requests=pilots)


def free_now(given: SiteState, *requests: tuple[str, int]) -> dict[str, int]:
    """By partition, the processors that are free at once beside requests `(partition, p)` of an hour."""
    assert given.queue is not None
    places = places_of(given)
    for partition, p in requests:
        home = next(place for place in places if place.name == partition)
        crafted = CraftedRequest(Request(p, 3600), 0.0, 1, "")
        places = with_crafted(places, home, [crafted], DEMAND)
    return {place.name: place.free.profile().free_at(0.0) for place in places}


def test_nodes_of_one_partition_alone_are_taken_there_alone() -> None:
    given = view(nodes={"p": "ab", "q": "bc"})
    assert free_now(given, ("p", 4)) == {"p": 4, "q": 8}, "a"
    assert free_now(given, ("p", 6)) == {"p": 2, "q": 6}, "a, and half of b"
    assert free_now(given, ("q", 8)) == {"p": 4, "q": 0}, "b and c"
    assert free_now(given, ("p", 4), ("q", 4)) == {"p": 0, "q": 4}, "a, then b"


def test_partitions_without_a_common_node_know_nothing_of_each_other() -> None:
    assert free_now(view(nodes={"p": "ab", "q": "cd"}), ("p", 8)) == {"p": 0, "q": 8}


def test_where_no_nodes_are_known_all_processors_are_shared() -> None:
    assert free_now(view(), ("p", 6)) == {"p": 2, "q": 2}


def test_pilots_count_in_their_own_partition() -> None:
    there = PilotView(id=1, state=PilotState.QUEUED, request=Request(2, 60), partition="q")
    given = view(there, nodes={"p": "ab", "q": "bc"})
    assert given.queue is not None
    assert [(place.name, place.allowed) for place in places_of(given)] == [("p", 3), ("q", 2)]


def alone(*pilots: PilotView, queue: QueueState) -> SiteState:
    rules = SiteRules(limits=LIMITS)
    return SiteState(now=100.0, queue=queue, rules=rules, heuristic="adaptive", requests=pilots)


def waiting(submitted: float, state: PilotState = PilotState.QUEUED, job: str | None = "7") -> PilotView:
    return PilotView(id=1, state=state, request=Request(4, 3600), job=job, submitted=submitted)


def test_requests_made_since_the_queue_was_read_count_until_it_shows_them() -> None:
    queue = QueueState(now=100.0, processors=8)
    shown = msgspec.structs.replace(queue, pending=(PendingJob("7", 4, 3600, 100.0),))
    submitting = waiting(99.0, PilotState.SUBMITTING, None)
    for pilot, seen, free in (
        (waiting(99.0), queue, 8),  # it is no longer in the queue, or the scheduler hides it
        (waiting(100.0), queue, 4),
        (waiting(100.0), shown, 4),
        (submitting, queue, 4),
        (submitting, shown, 0),
    ):
        (place,) = places_of(alone(pilot, queue=seen))
        assert place.free.profile().free_at(100.0) == free


def test_a_plan_of_the_scheduler_has_all_requests_that_it_got() -> None:
    queue = PlannedQueue(now=100.0, processors=8, plan=((100.0, 4), (3700.0, 8)))
    for pilot, free in ((waiting(100.0), 4), (waiting(100.0, PilotState.SUBMITTING, None), 0)):
        assert places_of(alone(pilot, queue=queue))[0].free.profile().free_at(100.0) == free


def test_a_queue_is_planned_again_only_where_something_has_changed() -> None:
    site = alone(waiting(100.0), queue=QueueState(now=100.0, processors=8))
    first = places_of(site)
    assert places_of(site, first)[0].free is first[0].free
    assert places_of(msgspec.structs.replace(site, requests=()), first)[0].free is not first[0].free


def test_a_site_whose_queue_is_not_known_has_no_room() -> None:
    (place,) = places_of(msgspec.structs.replace(alone(queue=QueueState(now=0.0, processors=8)), queue=None))
    assert (place.allowed, place.queue.processors) == (0, 0)
