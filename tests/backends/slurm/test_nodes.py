"""What nodes have and what is in use, how memory is counted, and what tasks get that name none."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from adaptor.config.schema import SiteConfig
from adaptor.resources import Node
from backends.base import SchedulerError
from backends.observed.rows import Amounts
from backends.slurm import parse
from backends.slurm.nodes import (
    Look,
    MemoryTerms,
    NodeTerms,
    PartitionNodes,
    find_site,
    gives_whole_nodes,
    memory_terms,
    node_terms,
)
from backends.slurm.placing.gres import parse_node_details
from tests.backends.slurm.slurm_rows import node

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


THREADS = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=4  CPUAlloc=3 CPUEfctv=14 CPUTot=16 CPULoad=5.57 "
    "AvailableFeatures=(null) ActiveFeatures=(null) Gres=(null) NodeAddr=127.0.0.1 RealMemory=4000 "
    "AllocMem=0 FreeMem=15139 Sockets=2 Boards=1 State=MIXED ThreadsPerCore=2 TmpDisk=0 Weight=1 "
    "Partitions=batch  BootTime=1795510044 SlurmdStartTime=1795511541"
)


def with_threads(terms: NodeTerms) -> PartitionNodes:
    details = parse_node_details(THREADS.encode())
    row = msgspec.structs.replace(node("n1", 3), idle=13, memory=4000)
    return find_site([row], "batch", Look(details=details, terms=terms))


@pytest.mark.parametrize(
    ("terms", "processors", "step", "held"),
    [
        (NodeTerms(), 14, 2, 3),  # two are kept from jobs, as specialised cores
        (NodeTerms(one_thread=True), 7, 1, 2),
        (NodeTerms(whole_cores=False), 14, 7, 3),
        (NodeTerms(processors=5), 4, 2, 3),
        (NodeTerms(of_socket=3), 6, 2, 3),
        (NodeTerms(job_processors=8), 8, 2, 3),
        (NodeTerms(processors=8, one_thread=True), 4, 1, 2),
    ],
)
def test_processors_are_what_requests_may_have_of_a_node(
    terms: NodeTerms, processors: int, step: int, held: int
) -> None:
    found = with_threads(terms)
    assert (found.machines[0].processors, found.processor_step) == (processors, step)
    assert found.listed["n1"].held.processors == held


def test_memory_that_one_job_may_have_of_a_node() -> None:
    found = with_threads(NodeTerms(job_memory=1000 * MIB))
    assert found.machines[0].memory == 1000 * MIB
    assert found.listed["n1"].most == Amounts(14, 1000 * MIB)


@pytest.mark.parametrize(
    ("arguments", "one"),
    [
        ((), False),
        (("--hint=nomultithread",), True),
        (("--hint", "nomultithread"), True),
        (("--hint=multithread",), False),
        (("--threads-per-core=1",), True),
        (("--threads-per-core=2",), False),
        (("--hint=nomultithread", "--hint=compute_bound"), False),
    ],
)
def test_options_with_which_a_processor_is_a_core(arguments: tuple[str, ...], one: bool) -> None:
    site = SiteConfig(backend="slurm", extra_args=arguments)
    assert node_terms({}, None, site, 8).one_thread is one


def test_bounds_of_a_partition_on_its_nodes() -> None:
    text = "PartitionName=a Default=YES State=UP MaxTime=1:00 MaxNodes=2 TotalCPUs=4 TotalNodes=2 MinNodes=2 "
    text += "MaxCPUsPerNode=3 MaxCPUsPerSocket=UNLIMITED MaxMemPerNode=500"
    (partition,) = parse.parse_partitions(text)
    assert partition.min_nodes == 2
    found = node_terms({"SelectTypeParameters": "CR_SOCKET"}, partition, SiteConfig(backend="slurm"), 8)
    assert found == NodeTerms(processors=3, job_processors=8, job_memory=500 * MIB, whole_cores=False)
