"""Tasks of several sizes join an open bag and run out of memory, while workers and the daemon die."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.journal.journal import Journal
from adaptor.journal.recovery import load_bag, recover
from adaptor.model import AttemptOutcome, CraftedRequest, QueueState, Request, TaskState
from adaptor.protocol.messages import AttemptKey, Ending, Hello, Report, Result
from adaptor.resources import Node, OwnNeeds, Room, TaskSize
from adaptor.scheduling.state import SiteTerms
from tests.examples import examples
from tests.journal.bags import add, add_bag

GIB = 1 << 30
TASKS = 14
LARGEST = Room(8, 16 * GIB)
TERMS = {"site": SiteTerms(initial_tr=60.0, growth_factor=2, longest=3600.0, reserve=0.0)}
NODES = QueueState(now=0.0, processors=8, nodes=(Node(name="n", processors=8, memory=16 * GIB),))

needs = st.builds(
    OwnNeeds,
    cpus=st.none() | st.integers(1, 8),
    memory=st.none() | st.integers(1, 16).map(lambda size: size * GIB),
    time=st.none() | st.floats(1.0, 900.0),
)


class MixedSizes(RuleBasedStateMachine):
    """Every lease is started at once: the workers hold no reserve."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.journal = Journal(Path(self.folder.name))
        self.now, self.names = 1000.0, 0
        self.rooms: dict[str, tuple[int, Room]] = {}
        self.running: dict[str, list[AttemptKey]] = {}
        self.given: dict[AttemptKey, TaskSize] = {}
        """What the task of an attempt needed when it was leased."""
        self.forgiven = 0
        """Failures of tasks that their user has put back."""

    @initialize(
        own=st.dictionaries(st.integers(0, TASKS - 1), needs),
        order=st.sampled_from(["file", "random"]),
        max_running=st.none() | st.integers(1, 4),
    )
    def submit(self, own: dict[int, OwnNeeds], order: str, max_running: int | None) -> None:
        spec = BagSpec(
            name="b",
            cwd="/",
            output="/o",
            environment={},
            memory=GIB,
            on_oom=2.0,
            retries=100,
            max_lost=0,
            replicas=0,
            max_running=max_running,
            order=order,  # type: ignore[arg-type]
        )
        tasks = [TaskInput("x", needs=own.get(task)) for task in range(TASKS)]
        self.bag = add_bag(self.journal, spec, tasks, self.now, open=True)
        self.total = TASKS
        self.broker = recover(self.journal, dict(TERMS), self.now)
        self.broker.state.queues["site"] = NODES

    # --- what happens ----------------------------------------------------------------------------

    @rule(processors=st.integers(1, 8), gib=st.integers(1, 16))
    def join(self, processors: int, gib: int) -> None:
        if len(self.running) < 4:
            self._join(Room(processors, gib * GIB))

    @rule(data=st.data(), ending=st.sampled_from([Ending.EXITED, Ending.EXITED, Ending.OUT_OF_MEMORY]))
    def end(self, data: st.DataObject, ending: Ending) -> None:
        if busy := sorted(name for name, keys in self.running.items() if keys):
            name = data.draw(st.sampled_from(busy))
            self._end(name, data.draw(st.sampled_from(self.running[name])), ending)

    @rule(more=st.lists(needs, min_size=1, max_size=3), crash=st.booleans())
    def tasks_join(self, more: list[OwnNeeds], crash: bool) -> None:
        if self.total >= 2 * TASKS:
            return
        tasks = [TaskInput("x", needs=each) for each in more]
        done = add(self.journal, self.bag, str(self.total), tasks)
        self.total += len(more)
        if crash:
            self.the_daemon_dies()
        else:
            own = {done.first + place: each for place, each in enumerate(more)}
            self.broker.append(self.bag, done.tasks, self.now, done.links, own)
            self._commit()

    @rule(some=st.lists(st.integers(0, 2 * TASKS), max_size=4))
    def its_user_cancels_tasks(self, some: list[int]) -> None:
        self.broker.cancel(self.bag, some)
        self._commit()

    @rule(some=st.none() | st.lists(st.integers(0, 2 * TASKS), max_size=4), other=st.none() | needs)
    def its_user_retries_tasks(self, some: list[int] | None, other: OwnNeeds | None) -> None:
        """With other resources, perhaps."""
        bag = load_bag(self.journal, self.bag)
        wanted = bag.may_retry(some)
        before = {task: bag.sizes.of(task) for task in wanted}
        self.forgiven += sum(bag.charged.get(task, 0) for task in wanted)
        assert self.broker.retry(bag, self.now, some, other) == len(wanted)
        self._commit()
        kept = load_bag(self.journal, self.bag)
        assert {task: kept.sizes.of(task) for task in wanted} == {
            task: size if other is None else other.over(size) for task, size in before.items()
        }

    @rule(some=st.lists(st.integers(0, 2 * TASKS), min_size=1, max_size=6), other=needs)
    def its_user_changes_what_tasks_need(self, some: list[int], other: OwnNeeds) -> None:
        bag = self.broker.state.bags[self.bag]
        wanted = {task: other.over(bag.sizes.of(task)) for task in bag.not_ended(some)}
        before = [*bag.waiting]
        assert self.broker.change_needs(self.bag, some, other, self.now) == len(wanted)
        self._commit()
        assert set(bag.waiting) <= set(before), "none is lost, none comes twice"
        assert {task: bag.sizes.of(task) for task in wanted} == wanted

    @rule()
    def its_user_pauses_it(self) -> None:
        self.broker.pause(self.bag)
        self._commit()

    @rule()
    def its_user_resumes_it(self) -> None:
        self.broker.resume(self.bag, self.now)
        self._commit()

    @rule(data=st.data())
    def a_worker_dies(self, data: st.DataObject) -> None:
        if self.running:
            name = data.draw(st.sampled_from(sorted(self.running)))
            del self.running[name]
            self.broker.lost(name, AttemptOutcome.PREEMPTED, self.now, self.now)
            self._commit()

    @rule()
    def the_daemon_dies(self) -> None:
        self.journal.close()
        self.journal = Journal(Path(self.folder.name))
        self.broker = recover(self.journal, dict(TERMS), self.now)
        self.broker.state.queues["site"] = NODES
        self._check_counts()
        for name in list(self.running):
            self._greet(name)

    # --- what always holds -------------------------------------------------------------------------

    @invariant()
    def no_worker_holds_more_than_it_has(self) -> None:
        for name, keys in self.running.items():
            if keys:
                held = [self.given[key] for key in keys]
                assert sum(size.processors for size in held) <= self.rooms[name][1].processors
                assert sum(size.memory or 0 for size in held) <= self.rooms[name][1].memory

    @invariant()
    def as_much_is_asked_for_as_may_start(self) -> None:
        bag, demands = self.broker.state.bags[self.bag], self.broker.demands("site")
        assert sum(demand.waiting for demand in demands) == bag.startable
        most, leased = bag.spec.max_running, bag.count(TaskState.LEASED)
        if most is not None:
            assert sum(demand.together or 0 for demand in demands) <= max(most, leased)

    @invariant()
    def the_counts_are_those_of_the_leases(self) -> None:
        self._check_counts()

    @invariant()
    def the_journal_knows_each_size(self) -> None:
        bag = self.broker.state.bags.get(self.bag)
        if bag is not None:
            kept = load_bag(self.journal, self.bag)
            assert [kept.sizes.of(task) for task in range(self.total)] == [
                bag.sizes.of(task) for task in range(self.total)
            ]

    @invariant()
    def growth_is_no_retry(self) -> None:
        charged = self.journal.connection.execute("SELECT SUM(charged) FROM task").fetchone()[0] or 0
        failed = "SELECT COUNT(*) FROM attempt WHERE outcome = 'failed'"
        assert charged + self.forgiven == self.journal.connection.execute(failed).fetchone()[0]

    def teardown(self) -> None:
        """A worker as large as the largest node does all the rest, one after the other."""
        self.its_user_retries_tasks(None, None)
        self.its_user_resumes_it()
        self.broker.close(self.bag)
        self._join(LARGEST)
        for _ in range(10 * self.total):
            if self._busy is None:
                self._report(f"w{self.names}")  # its heartbeat: max-running may leave it some now
            if (name := self._busy) is None:
                break
            self._end(name, self.running[name][0], Ending.EXITED)
        states = {load_bag(self.journal, self.bag).state(task) for task in range(self.total)}
        assert states <= {TaskState.DONE, TaskState.FAILED}
        self.journal.close()
        self.folder.cleanup()

    @property
    def _busy(self) -> str | None:
        """A worker that runs something."""
        return next((name for name, keys in self.running.items() if keys), None)

    # --- how ---------------------------------------------------------------------------------------

    def _join(self, room: Room) -> None:
        self.names += 1
        crafted = CraftedRequest(Request(room.processors, 10_000), None, 1, "because")
        pilot = self.journal.add_pilots("site", "tag-", [crafted], self.now)[0]
        name = f"w{self.names}"
        self.rooms[name], self.running[name] = (pilot, room), []
        self._greet(name)

    def _greet(self, name: str) -> None:
        pilot, room = self.rooms[name]
        hello = Hello(
            pilot=pilot,
            node=name,
            pid=1,
            version="test",
            processors=room.processors,
            memory=room.memory,
            deadline=self.now + 1e6,
            holding=list(self.running[name]),
            started=list(self.running[name]),
        )
        self.broker.hello(name, hello, "site", self.now)
        self._commit()
        self._report(name)

    def _end(self, name: str, key: AttemptKey, ending: Ending) -> None:
        self.now += 1.0
        self.running[name].remove(key)
        code = 0 if ending is Ending.EXITED else None
        self._report(name, Result(key, ending, started=self.now - 1, wall=1.0, exit_code=code))

    def _report(self, name: str, *results: Result) -> None:
        room = self.rooms[name][1]
        for key in self.running[name]:
            room = room.without(self.given[key])
        report = Report(
            results=list(results),
            started=list(self.running[name]),
            free_processors=room.processors,
            free_memory=room.memory,
        )
        self.broker.report(name, report, self.now)
        self._commit()

    def _commit(self) -> None:
        changes, drafts = self.broker.drain()
        self.journal.write(changes, self.now)
        for name, draft in drafts.items():
            if name in self.running:
                self.running[name] += [lease.key for lease in draft.leases]
                self.given |= {lease.key: lease.task or TaskSize(memory=GIB) for lease in draft.leases}
        for name, draft in drafts.items():
            for key in draft.abort:
                if key in self.running.get(name, ()):
                    self._end(name, key, Ending.ABORTED)

    def _check_counts(self) -> None:
        state = self.broker.state
        leases: Counter[tuple[int, int | None, str]] = Counter()
        shares: Counter[tuple[int, str]] = Counter()
        for worker in state.workers.values():
            for key, held in worker.held.items():
                leases[key.bag, held.line, worker.site] += 1
                shares[key.bag, worker.site] += held.cpus
        assert +leases == +Counter(dict(state.leases))
        assert +shares == +Counter(dict(state.held_processors))


MixedSizes.TestCase.settings = examples(
    15, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow]
)
TestMixedSizes = MixedSizes.TestCase
