"""Memory, GPUs and features on a real Slurm of four nodes of different size."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from adaptor.config.schema import SiteConfig
from adaptor.crafting.fits import tasks_on
from adaptor.model import QueueState
from adaptor.reports import JobState
from adaptor.resources import Node, TaskSize
from adaptor.units import Duration
from backends.base import PilotOrder, SubmitRefused
from backends.observed.rows import total, without
from backends.slurm.backend import SlurmBackend
from tests.backends.orders import runnable
from tests.clusters.slurm import ThrowawaySlurm
from tests.living import until

pytestmark = pytest.mark.slurm

MIB = 2**20
STAY = """\
printf '%s ' "$ADAPTOR_PROCESSORS" "${ADAPTOR_MEMORY:-none}" "${CUDA_VISIBLE_DEVICES:-none}" \
  "${ROCR_VISIBLE_DEVICES:-none}" > "$ADAPTOR_DIRECTORY/part-$ADAPTOR_NODE"
mv "$ADAPTOR_DIRECTORY/part-$ADAPTOR_NODE" "$ADAPTOR_DIRECTORY/up-$ADAPTOR_NODE"; sleep 600"""


def site(**keys: object) -> SlurmBackend:
    return SlurmBackend(SiteConfig(backend="slurm", command_timeout=Duration(20), **keys))  # type: ignore[arg-type]


class Orders:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def order(self, tag: str, p: int, task: TaskSize) -> PilotOrder:
        return runnable(self._folder, tag, STAY, p, task=task)

    def workers(self, tag: str) -> dict[str, list[str]]:
        """By node: processors, memory in bytes, devices."""
        files = (self._folder / tag).glob("up-*")
        return {file.name.removeprefix("up-"): file.read_text().split() for file in files}


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def state_of(backend: SlurmBackend, id: str) -> JobState:
    (report,) = backend.jobs([id], "no such tag")
    return report.state


def local_job(slurm: ThrowawaySlurm, *options: str) -> str:
    words = ["sbatch", "--parsable", "-t", "60", "--output=/dev/null", *options, "--wrap", "sleep 900"]
    return slurm.run(words).strip()


def running_job(slurm: ThrowawaySlurm, *options: str) -> str:
    id = local_job(slurm, *options)
    until(lambda: slurm.run(["squeue", "-h", "-j", id, "-o", "%T"]).strip() == "RUNNING", f"job {id} running")
    return id


def free_nodes(state: QueueState) -> list[Node]:
    """What running jobs leave of each node."""
    parts = defaultdict(list)
    for job in state.running:
        for part in job.parts:
            parts[part.node].append(part)
    return [
        Node(
            name=node.name,
            processors=node.processors - sum(part.processors for part in parts[node.name]),
            memory=(node.memory or 0) - sum(part.memory for part in parts[node.name]),
            gpus=without(node.gpus, total(part.gpus for part in parts[node.name])),
        )
        for node in state.nodes
        if node.ours and node.in_service
    ]


def slots(state: QueueState, task: TaskSize) -> int:
    return sum(tasks_on(node, task) for node in free_nodes(state))


def hold_parts(slurm: ThrowawaySlurm) -> None:
    """Local jobs that hold memory but hardly any processors, and a GPU of each kind."""
    running_job(slurm, "-N1", "-n1", "-w", "n2", "--mem=7500")
    running_job(slurm, "-N1", "-n1", "-w", "n3", "--mem=1000", "--gpus=1")
    running_job(slurm, "-N2", "-n5", "--ntasks-per-node=4", "-w", "n[1,3]", "--mem-per-cpu=100")


def test_what_is_told_is_what_slurm_says_of_each_node(mixed_slurm: ThrowawaySlurm) -> None:
    hold_parts(mixed_slurm)
    running_job(mixed_slurm, "-N1", "-n2", "-w", "n4", "--gpus=a100:1", "--mem-per-gpu=300")
    asleep = running_job(mixed_slurm, "-N1", "-n1", "-w", "n3", "--gpus=1", "--mem=50")
    mixed_slurm.run(["scontrol", "suspend", asleep])
    running_job(mixed_slurm, "-n2", "-c3", "--mem-per-cpu=20", "-x", "n1")
    said = mixed_slurm.run(["scontrol", "-d", "-o", "show", "node"])
    held: Counter[str] = Counter()
    for job in site().queue_state().running:
        for part in job.parts:
            held[f"{part.node} cpu"] += part.processors
            held[f"{part.node} mem"] += part.memory // MIB
            held[f"{part.node} gpu"] += sum(count for _, count in part.gpus)
    for line in said.splitlines():
        name = line.split()[0].removeprefix("NodeName=")
        told = [held[f"{name} {kind}"] for kind in ("cpu", "mem", "gpu")]
        patterns = (r"CPUAlloc=(\d+)", r"AllocMem=(\d+)", r"GresUsed=gpu:(?:a100:)?(\d+)")
        found = [re.search(pattern, line) for pattern in patterns]
        assert told == [int(match[1]) if match else 0 for match in found]  # since 24.11 no GPUs: no GresUsed=
    mixed_slurm.run(["scontrol", "resume", asleep])


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (TaskSize(processors=3, memory=100 * MIB), 3),
        (TaskSize(processors=3, memory=2100 * MIB), 2),
        (TaskSize(processors=1, memory=10 * MIB, gpus=2, gpu_type="a100"), 1),
        (TaskSize(processors=1, memory=500 * MIB, gpus=1), 3),
    ],
)
def test_as_many_tasks_start_at_once_as_the_nodes_have_room_for_and_no_more(
    mixed_slurm: ThrowawaySlurm, orders: Orders, task: TaskSize, expected: int
) -> None:
    hold_parts(mixed_slurm)
    backend = site()
    room = slots(backend.queue_state(), task)
    assert room == expected
    fits = backend.submit(orders.order("fits", room * task.processors, task))
    until(lambda: state_of(backend, fits) is JobState.RUNNING, "all of it")
    assert slots(backend.queue_state(), task) == 0
    more = backend.submit(orders.order("more", task.processors, task))
    until(lambda: backend.jobs([more], "none")[0].reason == "Resources", "Slurm's word that no node has room")


def test_workers_get_the_processors_memory_and_devices_of_their_node(
    mixed_slurm: ThrowawaySlurm, orders: Orders
) -> None:
    backend = site()
    task = TaskSize(processors=2, memory=200 * MIB, gpus=1)
    backend.submit(orders.order("gpus", 8, task))
    until(lambda: len(orders.workers("gpus")) == 2, "two workers")
    each = ["4", str(400 * MIB), "0,1", "0,1"]
    assert orders.workers("gpus") == {"n3": each, "n4": each}


def test_two_tasks_share_a_gpu(mixed_slurm: ThrowawaySlurm, orders: Orders) -> None:
    running_job(mixed_slurm, "-N1", "-n1", "-w", "n3", "--gpus=1", "--mem=100")
    backend = site()
    half = TaskSize(processors=1, memory=100 * MIB, gpus=0.5)
    assert slots(backend.queue_state(), half) == 6
    backend.submit(orders.order("halves", 6, half))
    until(lambda: len(orders.workers("halves")) == 2, "two workers")
    found = orders.workers("halves")
    assert found["n4"][:3] == ["4", str(400 * MIB), "0,1"]
    assert found["n3"][:3] == ["2", str(200 * MIB), "1"]


def test_a_task_of_two_nodes_gets_whole_ones_that_are_large_enough(
    mixed_slurm: ThrowawaySlurm, orders: Orders
) -> None:
    backend = site()
    task = TaskSize(processors=5, memory=7000 * MIB, nodes=2)
    state = backend.queue_state()
    assert [node.name for node in state.nodes if tasks_on(node, task)] == ["n3", "n2"]
    backend.submit(orders.order("two", 16, task))
    until(lambda: len(orders.workers("two")) == 2, "two workers")
    assert {name: words[0] for name, words in orders.workers("two").items()} == {"n2": "6", "n3": "8"}


def test_whole_nodes_with_gpus(mixed_slurm: ThrowawaySlurm, orders: Orders) -> None:
    backend = site(whole_nodes=True, processors_per_node=4)
    backend.queue_state()
    backend.submit(orders.order("whole", 8, TaskSize(processors=2, gpus=1)))
    until(lambda: len(orders.workers("whole")) == 2, "two workers")
    assert {name: words[2] for name, words in orders.workers("whole").items()} == {"n3": "0,1", "n4": "0,1"}


@pytest.mark.parametrize(
    ("p", "task", "words"),
    [
        (9, TaskSize(processors=9), "the largest node has 8"),
        (2, TaskSize(memory=20000 * MIB), "such a node has 16G"),
        (1, TaskSize(gpus=1, gpu_type="h100"), "the site has GPUs without a type, a100"),
        (3, TaskSize(gpus=3), "the most that such a node has is 2"),
        (5, TaskSize(gpus=1), "together hold 4: lower `limits.max_proc`"),
        (21, TaskSize(processors=3), "together hold 6"),
        (40, TaskSize(processors=5, nodes=5), "each needs 5 nodes, and 2 of the site hold it"),
    ],
)
def test_what_can_never_be_packed_is_refused_with_the_reason(
    mixed_slurm: ThrowawaySlurm, orders: Orders, p: int, task: TaskSize, words: str
) -> None:
    with pytest.raises(SubmitRefused, match=re.escape(words)):
        site().submit(orders.order("never", p, task))
    assert not mixed_slurm.run(["squeue", "-h"])


@pytest.mark.parametrize(
    ("keys", "nodes"),
    [
        ({"constraint": "old|fast"}, {"n1", "n2", "n4"}),
        ({"exclude": "n[1-3]"}, {"n4"}),
        ({"nodelist": "n[1,3]"}, {"n1", "n3"}),
        ({"gres": "gpu:2"}, {"n3", "n4"}),
        ({"extra_args": ("-C", "new", "--exclude=n4")}, {"n3"}),
    ],
)
def test_requests_run_on_the_nodes_that_the_keys_leave(
    mixed_slurm: ThrowawaySlurm, orders: Orders, keys: dict[str, object], nodes: set[str]
) -> None:
    backend = site(**keys)
    state = backend.queue_state()
    ours = [node for node in state.nodes if node.ours]
    assert {node.name for node in ours} == nodes
    assert state.processors == sum(node.processors for node in ours)
    backend.submit(orders.order("all", state.processors, TaskSize(memory=10 * MIB)))
    until(lambda: set(orders.workers("all")) == nodes, "a worker on each of these nodes")


def test_beside_a_planned_job_slurm_starts_nothing_that_runs_into_it(mixed_slurm: ThrowawaySlurm) -> None:
    """Three of six processors would be left on the node: its plan keeps the node wholly, as `parts` say."""

    def job(tasks: int, minutes: int) -> str:
        return local_job(mixed_slurm, "-N1", "-w", "n2", f"-n{tasks}", "-t", str(minutes), "--mem=100")

    def state(id: str) -> str:
        return mixed_slurm.run(["squeue", "-h", "-j", id, "-o", "%T"]).strip()

    first = job(5, 10)
    until(lambda: state(first) == "RUNNING", "the first job")
    second = job(3, 10)
    backend = site()
    until(lambda: any(each.parts for each in backend.queue_state().pending), "the plan of the second job")
    third, fourth = job(1, 30), job(1, 5)
    until(lambda: state(fourth) == "RUNNING", "the job that ends before")
    pending = {each.id: each for each in backend.queue_state().pending}
    assert set(pending) == {second, third}
    (part,) = pending[second].parts
    assert (part.node, part.processors, part.memory) == ("n2", 6, 8000 * MIB)
    until(lambda: bool(backend.queue_state().pending[1].parts), "the plan of the third job")
    second_plan, third_plan = (each.planned_start for each in backend.queue_state().pending)
    assert second_plan is not None
    assert third_plan is not None
    assert third_plan > second_plan + 500  # after it


def test_a_scarce_licence_keeps_everything(mixed_slurm: ThrowawaySlurm, orders: Orders) -> None:
    backend = site(licenses="matlab:2")
    assert backend.queue_state().running == ()
    job = running_job(mixed_slurm, "-n1", "--mem=10", "-L", "matlab:1", "-w", "n1")
    state = backend.queue_state()
    held = {each.id: each for each in state.running}
    assert held["licence matlab"].end == held[job].end
    assert held["licence matlab"].processors == 21
    id = backend.submit(orders.order("late", 1, TaskSize(memory=10 * MIB)))
    mixed_slurm.run(["scancel", job])
    until(lambda: state_of(backend, id) is JobState.RUNNING, "the request with both licences")
