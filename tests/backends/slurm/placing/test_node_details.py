"""What nodes have and what is in use."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adaptor.resources import Node
from backends.base import SchedulerError
from backends.slurm.nodes import PartitionNodes
from backends.slurm.placing.gres import parse_node_details

MIB = 2**20


def test_the_recorded_nodes_stand_in_the_order_of_their_weights(mixed: PartitionNodes) -> None:
    assert mixed.machines == (
        Node(name="n4", processors=4, memory=8000 * MIB, gpus=(("a100", 2),)),
        Node(name="n3", processors=8, memory=16000 * MIB, gpus=(("", 2),)),
        Node(name="n2", processors=6, memory=8000 * MIB),
        Node(name="n1", processors=4, memory=4000 * MIB),
    )
    assert mixed.features["n4"] == {"new", "fast"}
    assert mixed.nodes["n3"].held.memory == 870 * MIB
    assert mixed.nodes["n3"].held.gpus == (("", 2),)


def detail_of(answered: Callable[[str], str], old: str, new: str) -> str:
    (line,) = [line for line in answered("node_details").splitlines() if line.startswith("NodeName=n4 ")]
    assert old in line
    return line.replace(old, new) if old else line


def test_drained_gpus_and_memory_of_the_system_are_not_for_jobs(answered: Callable[[str], str]) -> None:
    text = detail_of(answered, "GresDrain=N/A", "GresDrain=gpu:a100:1")
    text = text.replace("Sockets=4", "Sockets=4 MemSpecLimit=512")
    found = parse_node_details(text.encode())["n4"]
    assert found.gpus == (("a100", 1),)
    assert found.memory == 7488 * MIB


def test_a_comment_changes_nothing(answered: Callable[[str], str]) -> None:
    text = detail_of(answered, " AveWatts=", " Comment=was Gres=gpu:9 RealMemory=1 once AveWatts=")
    assert parse_node_details(text.encode()) == parse_node_details(detail_of(answered, "", "").encode())


@pytest.mark.parametrize(
    ("old", "new"), [("NodeName=", "Node "), ("gpu:a100:2", "gpu:a:b:c:d"), ("AllocMem=", "AllocMem=x")]
)
def test_what_is_no_answer_about_nodes(answered: Callable[[str], str], old: str, new: str) -> None:
    with pytest.raises(SchedulerError, match="scontrol show node printed a line"):
        parse_node_details(detail_of(answered, old, new).encode())


def test_no_answer_is_no_detail() -> None:
    assert parse_node_details(b"") == {}
