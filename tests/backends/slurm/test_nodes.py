"""What nodes have and what is in use, how memory is counted, and what tasks get that name none."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from adaptor.resources import Node
from backends.base import SchedulerError
from backends.slurm import parse
from backends.slurm.nodes import MemoryTerms, PartitionNodes, gives_whole_nodes, memory_terms
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


@pytest.mark.parametrize(
    ("parameters", "counted"),
    [
        ("CR_CPU", False),
        ("CR_CORE_MEMORY", True),
        ("CR_CPU_Memory,CR_ONE_TASK_PER_CORE", True),
        ("CR_MEMORY", True),
    ],
)
def test_whether_memory_is_counted(parameters: str, counted: bool) -> None:
    assert memory_terms({"SelectTypeParameters": parameters}, {}, None).counted is counted


def test_the_partition_before_the_cluster(recorded: Callable[[str], str]) -> None:
    settings = {"SelectTypeParameters": "CR_CPU_Memory", "DefMemPerCPU": "1000", "MaxMemPerCPU": "UNLIMITED"}
    partitions = {each.name: each for each in parse.parse_partitions(recorded("plain/partitions.txt"))}
    own = msgspec.structs.replace(partitions["batch"], default_memory="300", most_memory="0")
    assert memory_terms(settings, partitions, "batch") == MemoryTerms(default=1000 * MIB)
    assert memory_terms(settings, {"batch": own}, "batch") == MemoryTerms(default=300 * MIB)


def test_a_task_that_names_none_gets_the_least_share_of_a_processor(mixed: PartitionNodes) -> None:
    assert mixed.default_memory == 1000 * MIB
    nodes = mixed.machines
    assert MemoryTerms(default=200 * MIB).default_on(nodes) == 200 * MIB
    assert MemoryTerms(default=9000 * MIB, most=600 * MIB).default_on(nodes) == 600 * MIB
    assert MemoryTerms(counted=False).default_on(nodes) is None
    assert MemoryTerms().default_on([Node(name="n1", processors=4)]) is None
    assert MemoryTerms().default_on([Node(name="n1", processors=64, memory=MIB)]) == MIB


def test_linear_selection_gives_whole_nodes() -> None:
    assert gives_whole_nodes({"SelectType": "select/linear"})
    assert not gives_whole_nodes({"SelectType": "select/cons_tres"})
