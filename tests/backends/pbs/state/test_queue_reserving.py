"""What reservations keep from us, more than PBS names."""

from __future__ import annotations

import msgspec
import pytest

from backends.observed.state import kept
from backends.pbs.fields import parse_long
from backends.pbs.openpbs.hardware import reservations_of
from backends.pbs.state.nodes import find_site
from tests.backends.pbs.openpbs_recordings import recorded
from tests.backends.pbs.pbs_rows import NOW, QUEUES, held, node, reservation
from tests.backends.pbs.state.test_queue import look

NODES = [node("n1"), node("n2[0]", processors=2), node("n2[1]", processors=2), node("n3")]
HELD = reservation("R1", "R1", NOW - 9, NOW + 90, held({"n1": 1, "n2[0]": 1}))


@pytest.mark.parametrize(
    ("place", "whole_nodes", "nodes"),
    [
        ("free", False, {"n1": 1, "n2[0]": 1}),
        ("scatter:excl", False, {"n1": 4, "n2[0]": 2}),
        ("exclhost", False, {"n1": 4, "n2[0]": 2, "n2[1]": 2}),
        ("free", True, {"n1": 4, "n2[0]": 2, "n2[1]": 2}),
    ],
)
def test_an_exclusive_reservation_has_more_than_it_asked_for(
    place: str, whole_nodes: bool, nodes: dict[str, int]
) -> None:
    text = recorded("09-rstat-f").replace("Resource_List.place = scatter", f"Resource_List.place = {place}")
    (found,) = reservations_of(parse_long(text, "Resv ID: ", indent=""))
    reserved = msgspec.structs.replace(HELD, exclusive=found.exclusive, machines=found.machines)
    assert kept(reserved, find_site(NODES, QUEUES, "workq"), whole_nodes=whole_nodes) == held(nodes)


def test_the_queue_shows_all_of_it_as_in_use() -> None:
    nodes = [node("n1", 1, "resv-exclusive"), *NODES[1:]]  # PBS counts what it has as assigned
    reserved = msgspec.structs.replace(HELD, exclusive=True, nodes=held({"n1": 1}))
    (running,) = look(nodes, [], reservations=[reserved]).running
    assert (running.id, running.processors) == ("reservation R1", 4)
