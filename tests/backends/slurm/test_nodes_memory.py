"""How memory is counted, and what tasks get that name none."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from adaptor.resources import Node
from backends.slurm import parse
from backends.slurm.nodes import MemoryTerms, PartitionNodes, gives_whole_nodes, memory_terms

MIB = 2**20


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
