"""Open bags and tasks after tasks, over crashes: appends count once, no task starts before its parents."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adaptor.api import TaskInput
from adaptor.errors import UsageError
from adaptor.journal.bag_rows import end_of_bag
from adaptor.journal.recovery import load_bag
from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.changes import AttemptStart
from tests.examples import examples
from tests.scheduling.broker_world import World

Parents = dict[int, tuple[list[int], list[int]]]
"""By task: those that must be done, and those that must have ended."""


class WatchedWorld(World):
    """Looks at every start: what the journal then says of the task's parents."""

    def __init__(self, directory: Path) -> None:
        self.parents: dict[int, Parents] = {}
        self.bags_before: dict[int, tuple[list[int], list[int]]] = {}
        self.ended: set[tuple[int, int]] = set()
        """Bags and numbers of tasks that the journal has, or had before a retry, as ended."""
        self.ended_bags: set[int] = set()
        super().__init__(directory)

    def commit(self) -> None:
        super().commit_to_journal()
        self.ended |= {(change.bag, change.task) for change in self.written.tasks if change.state.ended}
        self.ended_bags |= {bag for bag, tally in self.written.tallies.items() if tally.ended}
        starts = [change for change in self.written.attempts if isinstance(change, AttemptStart)]
        for start in starts:
            self._check(start.key)
        super().hand_out()

    def restart(self) -> None:
        """The next daemon writes ends too, when it reads the bags."""
        super().restart()
        db = self.journal.connection
        ends = "SELECT bag, number FROM task WHERE state IN ('done', 'failed', 'cancelled')"
        self.ended |= set(db.execute(ends).fetchall())
        self.ended_bags |= {bag for (bag,) in db.execute("SELECT id FROM bag WHERE ended IS NOT NULL")}

    def _check(self, key: AttemptKey) -> None:
        states = self.states(key.bag)
        done, ended = self.parents[key.bag].get(key.task, ([], []))
        assert all(states[parent] == "done" for parent in done)
        assert self.ended >= {(key.bag, parent) for parent in ended}
        done, ended = self.bags_before[key.bag]
        assert all(self.journal.read(end_of_bag, bag) is TaskState.DONE for bag in done)
        assert self.ended_bags >= set(ended)


class AfterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.names = 0
        self.appends: dict[int, dict[str, tuple[int, list[TaskInput]]]] = {}
        """By bag and key: the first number and the tasks of each append that was made."""
        self.open_bags: set[int] = set()

    @initialize()
    def begin(self) -> None:
        self.world = WatchedWorld(Path(self.folder.name))

    def some_bag(self, data: st.DataObject) -> int | None:
        return data.draw(st.sampled_from(sorted(self.appends))) if self.appends else None

    @rule(data=st.data(), retries=st.integers(0, 1))
    def open(self, data: st.DataObject, retries: int) -> None:
        """A bag, which runs after others in some cases."""
        running = sorted(self.world.broker.state.bags)
        before = data.draw(st.lists(st.sampled_from(running), max_size=2, unique=True)) if running else []
        split = data.draw(st.integers(0, len(before)))
        after, after_any = before[:split], before[split:]
        bag = self.world.open(retries=retries, after=tuple(after), after_any=tuple(after_any))
        self.world.parents[bag], self.world.bags_before[bag] = {}, (after, after_any)
        self.appends[bag] = {}
        self.open_bags.add(bag)

    @rule(data=st.data(), count=st.integers(1, 4), crash=st.booleans())
    def append(self, data: st.DataObject, count: int, crash: bool) -> None:
        bag = self.some_bag(data)
        if bag is not None and bag in self.open_bags:
            self.append_to(bag, data, count, crash=crash)

    def append_to(self, bag: int, data: st.DataObject, count: int, *, crash: bool = False) -> None:
        first = sum(len(tasks) for _, tasks in self.appends[bag].values())
        tasks = []
        for number in range(first, first + count):
            some = st.lists(st.integers(0, number - 1), max_size=2, unique=True) if number else st.just([])
            after, after_any = data.draw(some), data.draw(some)
            self.world.parents[bag][number] = (after, after_any)
            tasks.append(TaskInput(f"task {number}", after=(*after,), after_any=(*after_any,)))
        key = f"{bag}.{first}"
        assert self.world.append(bag, key, tasks, crash=crash) == first
        self.appends[bag][key] = (first, tasks)

    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """A client that got no answer sends an append again, whatever became of the bag."""
        bag = self.some_bag(data)
        if bag is not None and self.appends[bag]:
            key = data.draw(st.sampled_from(sorted(self.appends[bag])))
            first, tasks = self.appends[bag][key]
            assert self.world.append(bag, key, tasks) == first

    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        bag = self.some_bag(data)
        if bag is not None:
            self.world.broker.close(bag)
            self.world.commit()
            self.open_bags.discard(bag)

    @rule(processors=st.integers(1, 3))
    def join(self, processors: int) -> None:
        self.names += 1
        self.world.join(f"w{self.names}", processors)

    @rule(data=st.data(), exit_code=st.sampled_from([0, 0, 0, 1]))
    def finish(self, data: st.DataObject, exit_code: int) -> None:
        busy = sorted(id for id, player in self.world.players.items() if player.running)
        if busy:
            player = self.world.players[data.draw(st.sampled_from(busy))]
            key = data.draw(st.sampled_from(sorted(player.running, key=str)))
            self.world.finish(player, key, exit_code)

    @rule(data=st.data(), dies=st.booleans())
    def silence(self, data: st.DataObject, dies: bool) -> None:
        if not self.world.players:
            return
        id = data.draw(st.sampled_from(sorted(self.world.players)))
        if dies:
            del self.world.players[id]
        self.world.broker.lost(id, AttemptOutcome.LOST, self.world.now, self.world.now)
        self.world.commit()

    @rule(data=st.data(), all_tasks=st.booleans())
    def cancel(self, data: st.DataObject, all_tasks: bool) -> None:
        bag = self.some_bag(data)
        if bag is None or bag not in self.world.broker.state.bags:
            return
        some = data.draw(st.lists(st.integers(0, 8), max_size=3))
        self.world.broker.cancel(bag, None if all_tasks else some)
        self.world.commit()
        if all_tasks:
            self.open_bags.discard(bag)

    @rule(data=st.data(), restart=st.booleans(), again=st.booleans())
    def append_after_a_cancelled_bag(self, data: st.DataObject, restart: bool, again: bool) -> None:
        """More tasks of a bag after one before it was cancelled, and perhaps retried."""
        bags_before = self.world.bags_before
        pairs = [(bag, before) for bag in sorted(self.open_bags) for before in bags_before[bag][0]]
        if not pairs:
            return
        bag, before = data.draw(st.sampled_from(pairs))
        if before in self.world.broker.state.bags:
            self.world.broker.cancel(before)
            self.world.commit()
            self.open_bags.discard(before)
        if again:
            self.world.retry(before)
        if restart:
            self.world.restart()
        self.append_to(bag, data, 1)

    @rule(data=st.data(), all_tasks=st.booleans())
    def retry(self, data: st.DataObject, all_tasks: bool) -> None:
        bag = self.some_bag(data)
        if bag is None:
            return
        some = data.draw(st.lists(st.integers(0, 8), max_size=3))
        self.world.broker.retry(
            load_bag(self.world.journal, bag), self.world.now, None if all_tasks else some
        )
        self.world.commit()

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @rule()
    def time_passes(self) -> None:
        self.world.now += 20

    @invariant()
    def every_append_is_there_once(self) -> None:
        db = self.world.journal.connection
        for bag, appends in self.appends.items():
            total = sum(len(tasks) for _, tasks in appends.values())
            assert db.execute("SELECT tasks FROM bag WHERE id = ?", (bag,)).fetchone() == (total,)
            numbers = db.execute("SELECT number FROM task WHERE bag = ? ORDER BY number", (bag,))
            assert [number for (number,) in numbers] == [*range(total)]
            known = self.world.broker.state.bags.get(bag)
            assert known is None or known.total == total
            assert known is not None or bag not in self.open_bags

    @invariant()
    def the_journal_agrees_with_itself_and_with_the_broker(self) -> None:
        db = self.world.journal.connection
        for bag, is_open, ended, *counts in db.execute(
            "SELECT id, open, ended, waiting, leased, done, failed, cancelled, blocked FROM bag"
        ):
            states = self.world.states(bag)
            assert counts == [states.count(state.value) for state in TaskState]
            assert bool(is_open) == (bag in self.open_bags)
            unfinished = sum(states.count(word) for word in ("waiting", "leased", "blocked"))
            assert (ended is None) == (is_open or unfinished > 0)
            known = self.world.broker.state.bags.get(bag)
            if known is not None:
                assert [known.state(task).value for task in range(known.total)] == states

    @invariant()
    def a_task_is_blocked_by_something_and_done_after_its_parents(self) -> None:
        for bag, parents in self.world.parents.items():
            states, (bags_done, _) = self.world.states(bag), self.world.bags_before[bag]
            for task, state in enumerate(states):
                done, ended = parents[task]
                if state == "blocked":
                    awaits = self.world.broker.state.bags[bag].awaits
                    assert awaits or any(
                        states[parent] in ("waiting", "leased", "blocked") for parent in (*done, *ended)
                    )
                elif state in ("waiting", "leased", "done"):
                    assert all(states[parent] == "done" for parent in done)
                    ends = [self.world.journal.read(end_of_bag, each) for each in bags_done]
                    assert all(end is TaskState.DONE for end in ends)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            for bag in sorted(self.open_bags):
                self.world.broker.close(bag)
                self.world.commit()
            self.open_bags.clear()
            for player in list(self.world.players.values()):
                self.world.greet(player)
            workers = self.world.broker.state.workers
            for id in [id for id in workers if id not in self.world.players]:
                self.world.broker.lost(id, AttemptOutcome.LOST, self.world.now, self.world.now)
                self.world.commit()
            self.world.run_to_the_end()
            for bag in self.appends:
                assert self.world.journal.read(end_of_bag, bag) is not None
                assert not {"waiting", "leased", "blocked"} & set(self.world.states(bag))
        except UsageError as error:
            raise AssertionError from error
        finally:
            self.world.close()
            self.folder.cleanup()


TestAfterMachine = AfterMachine.TestCase
TestAfterMachine.settings = examples(
    25, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
