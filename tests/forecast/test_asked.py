"""A request in a person's words: its parts on nodes, and why it can never start."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.errors import UsageError
from adaptor.forecast.asked import AskedRequest
from adaptor.forecast.asked_at import beyond, request_at, why_never
from adaptor.forecast.start import StartRequest
from adaptor.model import QueueState
from adaptor.resources import Need, Node

G = 2**30
QUEUE = QueueState(
    now=0.0,
    processors=24,
    default_memory=G,
    nodes=(
        Node(name="a", processors=8, memory=16 * G),
        Node(name="b", processors=8, memory=16 * G, in_service=False),
        Node(name="c", processors=8, memory=64 * G, gpus=(("a100", 2),)),
        Node(name="d", processors=4, memory=64 * G, ours=False),
    ),
)
OURS = frozenset("abc")


def asked(**fields: object) -> StartRequest:
    return request_at(AskedRequest(tr=60.0, **fields), QUEUE, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "processors", "unit"),
    [
        ({}, 1, Need(chunks=1, processors=1, memory=G, nodes=OURS)),
        ({"processors": 20}, 20, Need(chunks=1, processors=1, memory=G, nodes=OURS)),
        ({"processors": 4, "memory": 9 * G}, 4,
         Need(chunks=1, processors=4, memory=9 * G, scatter=True, nodes=OURS)),
        ({"processors": 6, "nodes": 2}, 6,
         Need(chunks=1, processors=3, memory=3 * G, scatter=True, nodes=OURS)),
        ({"nodes": 2}, 16,
         Need(chunks=1, processors=8, memory=8 * G, scatter=True, whole_nodes=True, nodes=OURS)),
        ({"gpus": 1, "gpu_type": "a100"}, 1,
         Need(chunks=1, processors=1, memory=G, gpus=1, gpu_type="a100", scatter=True, nodes=OURS)),
    ],
)  # fmt: skip
def test_what_it_takes_of_the_nodes(fields: dict[str, object], processors: int, unit: Need) -> None:
    found = asked(**fields)
    assert (found.processors, found.unit) == (processors, unit)


@pytest.mark.parametrize(
    ("fields", "processors", "each"),
    [
        ({"processors": 3}, 4, 2),
        ({"processors": 3, "nodes": 1}, 4, 4),
        ({"processors": 1, "memory": 5 * G}, 6, 6),  # of its memory come five, and so three cores
        ({"nodes": 2}, 16, 8),
    ],
)
def test_it_has_whole_cores_and_the_processors_of_its_memory(
    fields: dict[str, object], processors: int, each: int
) -> None:
    queue = msgspec.structs.replace(QUEUE, processor_step=2, most_memory=G)
    found = request_at(AskedRequest(tr=60.0, **fields), queue, 1)  # type: ignore[arg-type]
    assert found.unit is not None
    assert (found.processors, found.unit.processors) == (processors, each)


def test_where_only_whole_nodes_are_given_processors_are_rounded_up() -> None:
    found = request_at(AskedRequest(tr=60.0, processors=9), QUEUE, 8)
    assert found.processors == 16
    assert found.unit is not None
    assert found.unit.whole_nodes
    assert found.step == 8


def test_where_no_nodes_are_known_processors_are_counted() -> None:
    unknown = QueueState(now=0.0, processors=8)
    assert request_at(AskedRequest(tr=60.0, processors=4, memory=G), unknown, 1).unit is None
    with pytest.raises(UsageError, match="how many processors"):
        request_at(AskedRequest(tr=60.0, nodes=2), unknown, 1)
    assert why_never(StartRequest(processors=9, tr=1.0), unknown) == "it needs 9 processors, and there are 8"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"processors": 24}, ""),
        ({"processors": 25}, "it needs 25 processors, and the nodes have 24"),
        ({"nodes": 3}, ""),
        ({"nodes": 4}, "it needs 4 nodes, and 3 of the site would do"),
        ({"processors": 9, "memory": G}, "it needs 9 processors on one node, and the largest node has 8"),
        ({"memory": 65 * G}, "it needs 65G on one node with 1 processor, and such a node has 64G"),
        ({"nodes": 2, "memory": 20 * G}, "it needs 2 nodes, and 1 of the site would do"),
        ({"gpus": 3}, "the most that such a node has is 2"),
        ({"gpus": 1, "gpu_type": "h100"}, "the site has"),
    ],
)  # fmt: skip
def test_why_no_such_request_ever_starts(fields: dict[str, object], why: str) -> None:
    found = why_never(asked(**fields), QUEUE)
    assert why in found if why else not found


@pytest.mark.parametrize(
    "fields", [{"processors": 0}, {"nodes": 0}, {"tr": 0.0}, {"gpus": -1}, {"processors": 5, "nodes": 2}]
)
def test_what_is_no_request(fields: dict[str, object]) -> None:
    wrong = AskedRequest(**{"tr": 60.0, **fields})  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        wrong.check()


def test_the_limits_of_the_scheduler() -> None:
    request = msgspec.structs.replace(asked(processors=8), tr=7200.0)
    assert beyond(request, "seconds", 7200.0, "MaxTime") == ""
    assert beyond(request, "seconds", 3600.0, "MaxTime") == "it asks for 2h, and 1h is the most (MaxTime)"
    assert beyond(request, "processors", 4, "QOS") == "it asks for 8 processors, and 4 is the most (QOS)"
