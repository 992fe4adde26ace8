"""Whatever happens, in whatever order, every task ends with exactly one recorded result, or is given up.

Deadly tasks take their workers down whenever they run; they are given up, and no other task is kept waiting.
"""

from __future__ import annotations

import tempfile
from math import inf
from pathlib import Path

import msgspec
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adaptor.guard_rails import MostFails
from adaptor.journal.recovery import load_bag
from adaptor.model import AttemptOutcome, PilotState, TaskState
from adaptor.protocol.messages import AttemptKey, Ending, Leaving
from adaptor.scheduling.changes import AttemptStart
from tests.examples import examples
from tests.scheduling.broker_world import Player, World


class WatchedWorld(World):
    """Looks at every lease of a suspect, and at what is leased beside one."""

    def commit(self) -> None:
        started = [
            change for change in self.broker.state.changes.attempts if isinstance(change, AttemptStart)
        ]
        for start in started:
            self._check(start.key, list(self.broker.state.workers[start.worker].held))
        super().commit()

    def _check(self, key: AttemptKey, held: list[AttemptKey]) -> None:
        state = self.broker.state
        bag = state.bags[key.bag]
        assert not bag.guard.paused, "a paused bag starts nothing"
        losses = {each: self.broker.state.bags[each.bag].losses for each in held}
        suspect = key.task in losses[key]
        assert all((each.task in losses[each]) == suspect for each in held), "suspects keep to themselves"
        if losses[key].isolated(key.task):
            assert held == [key], "it has had company twice"


ENDS = [state for state in PilotState if not state.in_system]


class BrokerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.names = 0
        self.deadly: set[tuple[int, int]] = set()
        """Bag and number of each task that takes its workers down."""
        self.retried: set[int] = set()
        """Bags whose user has put failed tasks back, with all their retries."""
        self.ran: set[AttemptKey] = set()
        """What ran at the last look."""
        self.most: dict[int, float] = {}
        """By bag: the largest `max-running` that it has had."""

    @initialize()
    def open(self) -> None:
        self.world = WatchedWorld(Path(self.folder.name))

    def player(self, data: st.DataObject) -> Player | None:
        if not self.world.players:
            return None
        return self.world.players[data.draw(st.sampled_from(sorted(self.world.players)))]

    def mild(self, player: Player | None) -> list[AttemptKey]:
        """What runs on a worker and may end."""
        running = player.running if player is not None else ()
        return sorted((key for key in running if (key.bag, key.task) not in self.deadly), key=str)

    @rule(
        tasks=st.integers(1, 6), cpus=st.integers(1, 2), retries=st.integers(0, 2), max_lost=st.integers(0, 4)
    )
    def submit(self, tasks: int, cpus: int, retries: int, max_lost: int) -> None:
        self.world.submit(tasks, cpus=cpus, retries=retries, max_lost=max_lost)

    @rule(
        tasks=st.integers(1, 6),
        cpus=st.integers(1, 2),
        max_running=st.none() | st.integers(1, 3),
        max_fails=st.none() | st.integers(1, 3).map(MostFails),
        requeue_on=st.sampled_from([(), (75,)]),
        priority=st.integers(-1, 1),
    )
    def submit_with_rails(self, **options: object) -> None:
        self.world.submit(**options)  # type: ignore[arg-type]

    @rule(tasks=st.integers(1, 6), deadly=st.integers(0, 5), max_lost=st.integers(1, 4))
    def submit_deadly(self, tasks: int, deadly: int, max_lost: int) -> None:
        self.deadly.add((self.world.submit(tasks, max_lost=max_lost), deadly % tasks))

    @rule(processors=st.integers(1, 4))
    def join(self, processors: int) -> None:
        self.names += 1
        self.world.join(f"w{self.names}", processors)

    @rule(
        data=st.data(),
        exit_code=st.sampled_from([0, 0, 0, 1, 75, 127]),
        took=st.sampled_from([0.01, 1.0, 30.0]),
    )
    def finish(self, data: st.DataObject, exit_code: int, took: float) -> None:
        player = self.player(data)
        if player is not None and (running := self.mild(player)):
            self.world.finish(player, data.draw(st.sampled_from(running)), exit_code, took)

    @rule(data=st.data(), heartbeat=st.booleans())
    def report(self, data: st.DataObject, heartbeat: bool) -> None:
        player = self.player(data)
        if player is not None:
            self.world.report(player, heartbeat)

    @rule(data=st.data())
    def finish_unheard(self, data: st.DataObject) -> None:
        """A task ends, and the report of it is lost."""
        player = self.player(data)
        if player is not None and (running := self.mild(player)):
            player.end(running[0], Ending.EXITED, self.world.now, 0)

    @rule(data=st.data(), why=st.sampled_from(list(Leaving)))
    def leave(self, data: st.DataObject, why: Leaving) -> None:
        player = self.player(data)
        if player is not None:
            self.world.leave(player, why)

    @rule(data=st.data(), dies=st.booleans())
    def silence(self, data: st.DataObject, dies: bool) -> None:
        """The daemon gives a worker up, which is dead, or only cut off."""
        player = self.player(data)
        if player is None:
            return
        if dies:
            del self.world.players[player.id]
        self.world.broker.lost(player.id, AttemptOutcome.LOST, self.world.now, self.world.now)
        self.world.commit()

    @rule()
    def deadly_tasks_strike(self) -> None:
        self.strike()

    def strike(self) -> bool:
        """Deadly tasks take the workers down on which they run; whether any did."""
        players = list(self.world.players.values())
        struck = [player for player in players if len(self.mild(player)) < len(player.running)]
        for player in struck:
            self.world.lose(player)
        return bool(struck)

    @rule(data=st.data(), state=st.sampled_from(ENDS))
    def a_pilot_ends(self, data: st.DataObject, state: PilotState) -> None:
        pilots = {player.pilot for player in self.world.players.values()}
        ended = sorted(self.world.broker.state.lost.keys() - pilots)
        if ended:
            self.world.end_pilot(data.draw(st.sampled_from(ended)), state)

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        if self.world.cpus:
            bag = data.draw(st.sampled_from(sorted(self.world.cpus)))
            self.retried.add(bag)
            self.world.retry(bag)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @rule()
    def orders_get_lost(self) -> None:
        self.world.lost_orders = True

    @rule()
    def orders_arrive_again(self) -> None:
        self.world.lost_orders = False

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.world.broker.state.bags:
            self.world.broker.cancel(data.draw(st.sampled_from(sorted(self.world.broker.state.bags))))
            self.world.commit()

    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        if self.world.broker.state.bags:
            self.world.broker.pause(data.draw(st.sampled_from(sorted(self.world.broker.state.bags))))
            self.world.commit()

    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        if self.world.broker.state.bags:
            chosen = data.draw(st.sampled_from(sorted(self.world.broker.state.bags)))
            self.world.broker.resume(chosen, self.world.now)
            self.world.commit()

    @rule(data=st.data(), max_running=st.none() | st.integers(1, 3), priority=st.integers(-1, 1))
    def change(self, data: st.DataObject, max_running: int | None, priority: int) -> None:
        bags = self.world.broker.state.bags
        if bags:
            chosen = bags[data.draw(st.sampled_from(sorted(bags)))]
            spec = msgspec.structs.replace(chosen.spec, max_running=max_running, priority=priority)
            self.world.broker.change_options(chosen.id, spec, self.world.now)
            self.world.commit()

    @rule()
    def time_passes(self) -> None:
        self.world.now += 20

    @invariant()
    def no_more_run_than_the_bag_allows(self) -> None:
        """What the daemon has given up counts once its worker is back: then none starts beside it."""
        state, ran = self.world.broker.state, self.ran
        self.ran = {key for player in self.world.players.values() for key in player.running}
        for bag in state.bags.values():
            most = bag.spec.max_running or inf
            self.most[bag.id] = max(most, self.most.get(bag.id, most))
            running = {
                key
                for id, worker in state.workers.items()
                if id in self.world.players
                for key in self.world.players[id].running
                if key.bag == bag.id and key in worker.held
            }
            assert len(running) <= self.most[bag.id] or running <= ran, (bag.id, running)

    @invariant()
    def the_journal_agrees_with_itself(self) -> None:
        db = self.world.journal.connection
        for bag, *counts in db.execute(
            "SELECT id, waiting, leased, done, failed, cancelled, blocked FROM bag"
        ):
            states = self.world.states(bag)
            assert counts == [states.count(state.value) for state in TaskState]

    @invariant()
    def each_waiting_task_stands_in_one_line(self) -> None:
        for bag in self.world.broker.state.bags.values():
            waiting = [task for task in range(bag.total) if bag.state(task) is TaskState.WAITING]
            assert sorted([*bag.waiting, *bag.suspects]) == waiting
            assert {task for task in waiting if task in bag.losses} == set(bag.suspects)

    @invariant()
    def the_journal_knows_the_losses(self) -> None:
        db = self.world.journal.connection
        for bag in self.world.broker.state.bags.values():
            rows = db.execute(
                "SELECT task, number FROM attempt WHERE bag = ? AND suspect", (bag.id,)
            ).fetchall()
            known = {(task, number) for task, number in rows if bag.state(task) is not TaskState.DONE}
            assert known == {(task, number) for task in range(bag.total) for number in bag.losses.of(task)}

    @invariant()
    def the_journal_knows_pauses_and_options(self) -> None:
        for bag in self.world.broker.state.bags.values():
            known = load_bag(self.world.journal, bag.id)
            assert (known.guard, known.spec) == (bag.guard, bag.spec)

    @invariant()
    def the_work_of_requeued_tasks_is_counted(self) -> None:
        for bag in self.world.broker.state.bags.values():
            known = load_bag(self.world.journal, bag.id)
            assert known.failures == bag.failures == sum(bag.charged.values())
            for task, seconds in bag.progress.items():
                assert known.progress[task] >= seconds - 1e-6, (
                    "a retry by the user keeps what was worked before"
                )

    @invariant()
    def only_tasks_with_all_their_losses_are_given_up(self) -> None:
        db = self.world.journal.connection
        given_up = db.execute(
            "SELECT bag, (SELECT COUNT(*) FROM attempt a"
            " WHERE a.bag = t.bag AND a.task = t.number AND a.suspect) FROM task t"
            " WHERE state = 'failed' AND error LIKE 'its worker died%'"
        )
        for bag, losses in given_up:
            assert losses >= self.world.journal.bag_spec(bag).max_lost > 0

    @invariant()
    def no_task_has_two_results(self) -> None:
        db = self.world.journal.connection
        twice = db.execute(
            "SELECT bag, task FROM attempt WHERE outcome = 'done' GROUP BY bag, task HAVING COUNT(*) > 1"
        ).fetchall()
        assert twice == []

    @invariant()
    def only_failures_are_charged(self) -> None:
        db = self.world.journal.connection
        counts = db.execute(
            "SELECT t.bag, t.charged, (SELECT COUNT(*) FROM attempt a WHERE"
            " a.bag = t.bag AND a.task = t.number AND a.outcome IN ('failed', 'time-out')) FROM task t"
        ).fetchall()
        assert all(charged <= failed for _, charged, failed in counts)
        assert all(charged == failed for bag, charged, failed in counts if bag not in self.retried)

    def run_to_the_end(self) -> None:
        """New workers come for those that deadly tasks take down; each such task takes few more."""
        workers = 1 + 5 * len(self.deadly)
        while self.world.broker.busy:
            assert workers, "a deadly task is tried again and again"
            workers -= 1
            self.names += 1
            self.world.join(f"w{self.names}", processors=8)
            while self.world.broker.busy and not self.strike():
                self._let_one_end()

    def _let_one_end(self) -> None:
        player = next((each for each in self.world.players.values() if each.running), None)
        assert player is not None, "nothing runs, although tasks wait and a worker has room"
        self.world.finish(player)

    def teardown(self) -> None:
        world = self.world
        world.lost_orders = False
        # Workers that are cut off or whose orders were lost make themselves known again.
        for player in list(world.players.values()):
            world.greet(player)
        for id in [
            worker.id for worker in world.broker.state.workers.values() if worker.id not in world.players
        ]:
            world.broker.lost(id, AttemptOutcome.LOST, world.now, world.now)
            world.commit()
        for bag in list(world.broker.state.bags):
            world.broker.resume(bag, world.now)
            world.commit()
        self.run_to_the_end()
        db = world.journal.connection
        for bag, task in self.deadly:
            assert world.states(bag)[task] in ("failed", "cancelled")
        done = db.execute("SELECT COUNT(*) FROM task WHERE state = 'done'").fetchone()[0]
        results = db.execute(
            "SELECT COUNT(*) FROM task t JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
            " AND a.number = t.result WHERE a.outcome = 'done' AND t.state = 'done'"
        ).fetchone()[0]
        assert results == done
        world.close()
        self.folder.cleanup()


BrokerMachine.TestCase.settings = examples(
    100, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow]
)
TestBrokerMachine = BrokerMachine.TestCase
