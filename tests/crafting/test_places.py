"""What a request of one partition takes of the others."""

from __future__ import annotations

from adaptor.crafting.places import places_of, with_crafted
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState
from adaptor.model import CraftedRequest, Limits, PilotState, QueueState, Request
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
