"""Whatever happens, in whatever order, every task ends with exactly one recorded result."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import Ending, Leaving
from tests.examples import examples
from tests.scheduling.broker_world import Player, World


class BrokerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.names = 0

    @initialize()
    def open(self) -> None:
        self.world = World(Path(self.folder.name))

    def player(self, data: st.DataObject) -> Player | None:
        if not self.world.players:
            return None
        return self.world.players[data.draw(st.sampled_from(sorted(self.world.players)))]

    @rule(tasks=st.integers(1, 6), cpus=st.integers(1, 2), retries=st.integers(0, 2))
    def submit(self, tasks: int, cpus: int, retries: int) -> None:
        self.world.submit(tasks, cpus=cpus, retries=retries)

    @rule(processors=st.integers(1, 4))
    def join(self, processors: int) -> None:
        self.names += 1
        self.world.join(f"w{self.names}", processors)

    @rule(data=st.data(), exit_code=st.sampled_from([0, 0, 0, 1]), took=st.sampled_from([0.01, 1.0, 30.0]))
    def finish(self, data: st.DataObject, exit_code: int, took: float) -> None:
        player = self.player(data)
        if player is not None and player.running:
            self.world.finish(
                player, data.draw(st.sampled_from(sorted(player.running, key=str))), exit_code, took
            )

    @rule(data=st.data(), heartbeat=st.booleans())
    def report(self, data: st.DataObject, heartbeat: bool) -> None:
        player = self.player(data)
        if player is not None:
            self.world.report(player, heartbeat)

    @rule(data=st.data())
    def finish_unheard(self, data: st.DataObject) -> None:
        """A task ends, and the report of it is lost."""
        player = self.player(data)
        if player is not None and player.running:
            player.end(next(iter(player.running)), Ending.EXITED, self.world.now, 0)

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

    @rule()
    def time_passes(self) -> None:
        self.world.now += 20

    @invariant()
    def the_journal_agrees_with_itself(self) -> None:
        db = self.world.journal.connection
        for bag, *counts in db.execute("SELECT id, waiting, leased, done, failed, cancelled FROM bag"):
            states = self.world.states(bag)
            assert counts == [states.count(state.value) for state in TaskState]

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
        wrong = db.execute(
            "SELECT t.bag, t.number FROM task t WHERE t.charged != (SELECT COUNT(*) FROM attempt a WHERE"
            " a.bag = t.bag AND a.task = t.number AND a.outcome = 'failed')"
        ).fetchall()
        assert wrong == []

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
        world.run_to_the_end()
        db = world.journal.connection
        done = db.execute("SELECT COUNT(*) FROM task WHERE state = 'done'").fetchone()[0]
        results = db.execute(
            "SELECT COUNT(*) FROM task t JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
            " AND a.number = t.result WHERE a.outcome = 'done' AND t.state = 'done'"
        ).fetchone()[0]
        assert results == done
        world.close()
        self.folder.cleanup()


BrokerMachine.TestCase.settings = examples(
    150, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow]
)
TestBrokerMachine = BrokerMachine.TestCase
