"""Wide tasks, tasks with GPUs, tasks on several nodes: which workers get them, and what is kept for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.journal.journal import Journal
from adaptor.journal.recovery import load_bag, recover
from adaptor.model import AttemptOutcome, CraftedRequest, Request, TaskState
from adaptor.protocol.messages import (
    AttemptKey,
    BagContext,
    Ending,
    Hello,
    Leaving,
    Orders,
    Report,
    Result,
)
from adaptor.resources import TaskGpus
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import SiteTerms
from adaptor.worker.slots import HeldTask, Slots
from tests.examples import examples
from tests.journal.bags import add_bag

TERMS = {"site": SiteTerms(initial_tr=60.0, growth_factor=2, longest=3600.0)}
DEADLINE = 1e6


class Node:
    """A worker with the slots of a real one."""

    def __init__(self, lab: Cluster, name: str, pilot: int, processors: int, gpus: int, kind: str) -> None:
        self.lab, self.name, self.pilot = lab, name, pilot
        self.id = f"{pilot}-{name}-1"
        self.slots = Slots(processors, 1 << 30, DEADLINE, gpus=gpus, gpu_type=kind)
        self.results: list[Result] = []

    @property
    def runs(self) -> list[AttemptKey]:
        """What it executes itself."""
        return [key for key, held in self.slots.running.items() if not held.lease.takes_part]

    @property
    def kept(self) -> list[AttemptKey]:
        """For what it is kept."""
        return [key for key, held in self.slots.running.items() if held.lease.takes_part]

    def hello(self) -> Hello:
        return Hello(
            pilot=self.pilot,
            node=self.name,
            pid=1,
            version="test",
            processors=self.slots.processors,
            memory=self.slots.memory,
            gpus=len(self.slots.whole.gpus),
            gpu_type=self.slots.whole.gpu_type,
            deadline=DEADLINE,
            unacknowledged=self.results,
            holding=[*self.slots.queue, *self.slots.running],
            started=list(self.slots.running),
        )

    def report(self, *, heartbeat: bool = False) -> Report:
        while self.slots.start_next(0.0):
            pass
        return Report(
            results=self.results,
            started=list(self.slots.running),
            free_processors=self.slots.free_processors,
            free_memory=self.slots.free_memory,
            free_gpus=list(self.slots.free_gpus),
            queued=len(self.slots.queue),
            load=[(key, 1.0) for key in self.slots.running] if heartbeat else [],
        )

    def obey(self, draft: Orders) -> None:
        self.results = [each for each in self.results if each.key not in draft.acknowledged]
        for told in draft.leases:
            lease = msgspec.structs.replace(told, command="x")
            self.slots.add(HeldTask(lease, self.lab.contexts[told.key.bag]))
        for key in draft.abort:
            self.end(key, Ending.ABORTED)

    def end(self, key: AttemptKey, ending: Ending, exit_code: int | None = None) -> None:
        if key in self.slots.queue:
            self.slots.take(key)
            self.results.append(Result(key, Ending.RETURNED))
        elif key in self.slots.running:
            self.slots.end(key)
            self.results.append(Result(key, ending, started=1.0, wall=1.0, exit_code=exit_code))


class Cluster:
    """A broker with a journal, and nodes that do as they are told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = Journal(folder)
        self.broker = recover(self.journal, dict(TERMS), 0.0)
        self.nodes: list[Node] = []
        self.contexts: dict[int, BagContext] = {}
        self.now = 0.0
        self.deaf = False
        """Whether no order arrives."""

    def submit(self, tasks: int, **options: object) -> int:
        spec = BagSpec(name="b", cwd="/", output="/o/{bag}", environment={}, replicas=0, **options)  # type: ignore[arg-type]
        id = add_bag(self.journal, spec, [TaskInput("x")] * tasks, self.now)
        bag = Bag(id, self.journal.bag_spec(id), tasks)
        bag.fill()
        self.contexts[id] = BagContext(id, "/", "/o", {}, spec.task)
        self.broker.add_bag(bag, self.now)
        self.commit()
        self.settle()
        return id

    def pilot(self) -> int:
        return self.journal.add_pilots(
            "site", "t-", [CraftedRequest(Request(8, 60), None, 1, "because")], self.now
        )[0]

    def join(self, name: str, pilot: int, processors: int = 4, gpus: int = 0, kind: str = "") -> Node:
        node = Node(self, name, pilot, processors, gpus, kind)
        self.nodes.append(node)
        self.greet(node)
        self.settle()
        return node

    def greet(self, node: Node) -> None:
        self.broker.hello(node.id, node.hello(), "site", self.now)
        self.commit()

    def beat(self) -> None:
        """Much later every node tells all that it holds, so that lost orders are noticed."""
        self.now += 1000
        for node in list(self.nodes):
            self.broker.report(node.id, node.report(heartbeat=True), self.now)
            self.commit()
        self.settle()

    def settle(self) -> None:
        """Until no node has anything to say."""
        for _ in range(3):
            for node in list(self.nodes):
                self.broker.report(node.id, node.report(), self.now)
                self.commit()

    def finish(self, node: Node, key: AttemptKey | None = None) -> None:
        self.now += 1
        node.end(key or node.runs[0], Ending.EXITED, 0)
        self.settle()

    def lose(self, node: Node) -> None:
        self.nodes.remove(node)
        self.now += 60
        self.broker.lost(node.id, AttemptOutcome.LOST, self.now, self.now)
        self.commit()
        self.settle()

    def leave(self, node: Node, why: Leaving = Leaving.SIGNAL) -> None:
        self.nodes.remove(node)
        for key in list(node.slots.running):
            node.end(key, Ending.ENDED)
        self.broker.goodbye(node.id, why, node.results, self.now)
        self.commit()
        self.settle()

    def restart(self) -> None:
        self.journal.close()
        self.journal = Journal(self.folder)
        self.broker = recover(self.journal, dict(TERMS), self.now)

    def commit(self) -> None:
        changes, drafts = self.broker.drain()
        self.journal.write(changes, self.now)
        for node in list(self.nodes):
            if node.id not in drafts or self.deaf:
                continue
            node.obey(drafts[node.id])
            if drafts[node.id].say_hello:
                self.greet(node)

    def states(self, bag: int) -> list[TaskState]:
        loaded = load_bag(self.journal, bag)
        return [loaded.state(task) for task in range(loaded.total)]

    def attempts(self, bag: int) -> list[tuple[int, str, str | None]]:
        rows = "SELECT task, node, outcome FROM attempt WHERE bag = ? ORDER BY task, number"
        return list(self.journal.connection.execute(rows, (bag,)))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.journal.close()


# --- wide tasks


def test_one_worker_is_kept_for_a_wide_task_and_no_other(cluster: Cluster) -> None:
    one, *others = (cluster.join(name, cluster.pilot()) for name in ("n1", "n2", "n3"))
    narrow = cluster.submit(100)
    wide = cluster.submit(3, cpus=4)
    for left in (3, 2, 1, 0):
        cluster.finish(one)
        assert [key.bag for key in one.runs] == ([narrow] * left or [wide])
        for other in others:
            cluster.finish(other)
            assert [key.bag for key in other.runs] == [narrow] * 4


# --- GPUs


def test_tasks_with_gpus_run_where_gpus_are_free(cluster: Cluster) -> None:
    without, having = cluster.join("n1", cluster.pilot()), cluster.join("n2", cluster.pilot(), gpus=2)
    cluster.submit(3, gpus=TaskGpus(1))
    assert (len(without.runs), len(having.runs)) == (0, 2)
    cluster.finish(having)
    assert len(having.runs) == 2


def test_tasks_that_share_gpus_fill_them(cluster: Cluster) -> None:
    node = cluster.join("n1", cluster.pilot(), processors=9, gpus=2)
    halves, thirds = cluster.submit(3, gpus=TaskGpus(0.5)), cluster.submit(3, gpus=TaskGpus(1 / 3))
    assert sum(1 / 2 if key.bag == halves else 1 / 3 for key in node.runs) <= 2
    while node.runs:
        cluster.finish(node)
    assert {*cluster.states(halves), *cluster.states(thirds)} == {TaskState.DONE}


def test_a_type_is_asked_for_by_name(cluster: Cluster) -> None:
    old, new = (cluster.join(kind, cluster.pilot(), gpus=1, kind=kind) for kind in ("k80", "a100"))
    cluster.submit(2, gpus=TaskGpus(1, "a100"))
    assert (len(old.runs), len(new.runs)) == (0, 1)
    cluster.submit(2, gpus=TaskGpus(1))
    assert len(old.runs) == 1


def test_processors_beside_gpus_are_kept_while_tasks_wait_for_these(cluster: Cluster) -> None:
    node, other = cluster.join("n1", cluster.pilot(), gpus=1), cluster.join("n2", cluster.pilot())
    with_gpus = cluster.submit(2, gpus=TaskGpus(1))
    plain = cluster.submit(8)
    assert [key.bag for key in node.runs] == [with_gpus]
    assert [key.bag for key in other.runs] == [plain] * 4
    cluster.finish(node)
    assert [key.bag for key in node.runs] == [with_gpus, plain, plain, plain], "the last one runs: none waits"


def test_tasks_that_these_gpus_cannot_run_keep_no_processors(cluster: Cluster) -> None:
    node = cluster.join("n1", cluster.pilot(), gpus=1)
    cluster.submit(2, gpus=TaskGpus(2))
    plain = cluster.submit(4)
    assert [key.bag for key in node.runs] == [plain] * 4


# --- several nodes


def pair(cluster: Cluster) -> tuple[Node, Node]:
    pilot = cluster.pilot()
    return cluster.join("n2", pilot), cluster.join("n10", pilot)


def test_a_task_takes_whole_nodes_and_runs_on_the_first(cluster: Cluster) -> None:
    first, second = pair(cluster)
    bag = cluster.submit(2, nodes=2)
    (key,) = first.runs
    assert (second.runs, second.kept) == ([], [key])
    assert first.slots.running[key].lease.nodes == ["n2", "n10"]
    assert first.slots.free_processors == second.slots.free_processors == 0
    cluster.submit(1)
    assert len([*first.runs, *second.runs]) == 1, "no other task gets in"
    cluster.finish(first)
    assert cluster.attempts(bag)[0] == (0, "n2,n10", "done")
    assert cluster.states(bag)[0] is TaskState.DONE


def test_nodes_of_different_pilots_do_not_go_together(cluster: Cluster) -> None:
    nodes = [cluster.join("n1", cluster.pilot()), cluster.join("n2", cluster.pilot())]
    cluster.submit(1, nodes=2)
    assert not any(node.runs or node.kept for node in nodes)


def test_nodes_too_small_do_not_take_part(cluster: Cluster) -> None:
    pilot = cluster.pilot()
    nodes = [cluster.join(f"n{number}", pilot, processors) for number, processors in enumerate((4, 2, 4))]
    cluster.submit(1, nodes=2, cpus=3)
    assert [bool(node.runs or node.kept) for node in nodes] == [True, False, True]


def test_all_tasks_of_both_kinds_run(cluster: Cluster) -> None:
    first, second = pair(cluster)
    small = cluster.submit(20)
    wide = cluster.submit(3, nodes=2)
    for _ in range(40):
        for node in (first, second):
            if node.runs:
                cluster.finish(node)
    assert {*cluster.states(small), *cluster.states(wide)} == {TaskState.DONE}
    assert not cluster.broker.busy
    assert not cluster.broker.state.bags, "no lease keeps a bag in memory"
    assert not any(cluster.broker.state.held_processors.values())


def test_a_pilot_made_for_such_tasks_waits_for_its_other_node(cluster: Cluster) -> None:
    bag = cluster.submit(1, nodes=2)
    small = cluster.submit(4)
    pilot = cluster.pilot()
    cluster.broker.made_for(pilot, cluster.contexts[bag].task)
    first = cluster.join("n1", pilot)
    assert first.runs == []
    cluster.join("n2", pilot)
    assert [key.bag for key in first.runs] == [bag]
    assert cluster.states(small) == [TaskState.WAITING] * 4


@pytest.mark.parametrize("root", [True, False])
def test_a_task_is_lost_with_any_of_its_nodes(cluster: Cluster, root: bool) -> None:
    first, second = pair(cluster)
    bag = cluster.submit(1, nodes=2)
    lost, other = (first, second) if root else (second, first)
    cluster.lose(lost)
    assert cluster.attempts(bag) == [(0, "n2,n10", "lost")]
    assert cluster.states(bag) == [TaskState.WAITING]
    assert (other.runs, other.kept) == ([], []), "the other node is free again"
    assert 0 in cluster.broker.state.bags[bag].losses, "it is a suspect"
    again = cluster.join(lost.name + "0", other.pilot)
    assert len([*other.runs, *again.runs]) == 1
    cluster.finish(other if other.runs else again)
    assert cluster.states(bag) == [TaskState.DONE]


@pytest.mark.parametrize("root", [True, False])
def test_a_node_that_leaves_ends_the_task_without_a_charge(cluster: Cluster, root: bool) -> None:
    first, second = pair(cluster)
    bag = cluster.submit(1, nodes=2)
    cluster.leave(first if root else second)
    assert cluster.states(bag) == [TaskState.WAITING]
    (left,) = cluster.nodes
    assert (left.runs, left.kept) == ([], [])
    assert not cluster.broker.state.bags[bag].charged


def test_a_cancelled_task_frees_all_its_nodes(cluster: Cluster) -> None:
    first, second = pair(cluster)
    bag = cluster.submit(1, nodes=2)
    cluster.broker.cancel(bag)
    cluster.commit()
    cluster.settle()
    assert [*first.runs, *second.kept] == []
    assert cluster.attempts(bag) == [(0, "n2,n10", "cancelled")]
    assert not cluster.broker.state.bags


def test_the_nodes_of_a_task_are_known_after_a_restart(cluster: Cluster) -> None:
    first, second = pair(cluster)
    bag = cluster.submit(1, nodes=2)
    (key,) = first.runs
    cluster.restart()
    for node in (second, first):
        cluster.greet(node)
    cluster.settle()
    assert (first.runs, second.kept) == ([key], [key])
    cluster.finish(first)
    assert second.kept == []
    assert cluster.states(bag) == [TaskState.DONE]


def test_a_node_that_does_not_come_back_after_a_restart_loses_the_task(cluster: Cluster) -> None:
    first, second = pair(cluster)
    bag = cluster.submit(1, nodes=2)
    cluster.nodes.remove(second)
    cluster.restart()
    cluster.greet(first)
    cluster.settle()
    assert len(first.runs) == 1
    silent = [worker.id for worker in cluster.broker.silent(cluster.now + 1) if worker.awaited]
    assert silent == [second.id]
    cluster.broker.lost(second.id, AttemptOutcome.LOST, cluster.now, cluster.now)
    cluster.commit()
    cluster.settle()
    assert first.runs == []
    assert cluster.states(bag) == [TaskState.WAITING]


def test_an_order_that_is_lost_on_its_way_to_a_node_gives_the_task_back(cluster: Cluster) -> None:
    pilot = cluster.pilot()
    first, second = cluster.join("n1", pilot), cluster.join("n2", pilot)
    cluster.nodes.remove(second)  # it hears nothing
    bag = cluster.submit(1, nodes=2)
    assert len(first.runs) == 1
    cluster.nodes.append(second)
    cluster.greet(second)  # and says that it holds nothing
    cluster.settle()
    (key,) = first.runs
    assert (key.attempt, second.kept) == (2, [key]), "it was given back, and leased anew"
    assert cluster.attempts(bag) == [(0, "n1,n2", "returned"), (0, "n1,n2", None)]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["finish", "finish", "lose", "leave", "join", "restart", "deaf", "beat", "cancel"]),
        st.integers(0, 99),
    ),
    max_size=25,
)


@examples(20)
@given(EVENTS, st.booleans())
def test_whatever_is_lost_every_task_ends_once(events: list[tuple[str, int]], gpus: bool) -> None:
    with TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        pilots = [cluster.pilot(), cluster.pilot()]
        more = {"gpus": TaskGpus(1)} if gpus else {}
        for number in range(4):
            cluster.join(f"n{number}", pilots[number % 2], gpus=2)
        bags = [cluster.submit(3, nodes=2, max_lost=0, **more), cluster.submit(6, max_lost=0, **more)]
        for number, (event, which) in enumerate(events):
            happen(cluster, event, which, f"x{number}", pilots[which % 2])
            check(cluster)
        cluster.deaf = False
        for turn in range(40):
            if not cluster.broker.state.bags:
                break
            for number in range(4):
                cluster.join(f"y{turn}.{number}", pilots[number % 2], gpus=2)
            cluster.beat()
            for node in list(cluster.nodes):
                if node.runs:
                    cluster.finish(node)
                elif not node.kept:
                    cluster.leave(node, Leaving.IDLE)
        ended = {state for bag in bags for state in cluster.states(bag)}
        assert ended <= {TaskState.DONE, TaskState.CANCELLED}
        assert not cluster.broker.state.bags
        assert not any(cluster.broker.state.held_processors.values())
        assert not any(node.runs or node.kept for node in cluster.nodes)
        cluster.journal.close()


def happen(cluster: Cluster, event: str, which: int, name: str, pilot: int) -> None:
    node = cluster.nodes[which % len(cluster.nodes)] if cluster.nodes else None
    match event:
        case "join":
            cluster.join(name, pilot, gpus=2)
        case "restart":
            cluster.restart()
        case "deaf":
            cluster.deaf = not cluster.deaf
        case "beat":
            cluster.beat()
        case "cancel" if which == 0:
            cluster.broker.cancel(1)
            cluster.commit()
        case "finish" if node is not None and node.runs:
            cluster.finish(node)
        case "lose" if node is not None:
            cluster.lose(node)
        case "leave" if node is not None:
            cluster.leave(node)


def check(cluster: Cluster) -> None:
    """No attempt runs twice, and beside one on several nodes nothing runs."""
    running = [key for node in cluster.nodes for key in node.runs]
    assert len(set(running)) == len(running)
    for node in cluster.nodes:
        whole = [key for key, held in node.slots.running.items() if held.bag.task.nodes > 1]
        assert not whole or len(node.slots.running) == 1
