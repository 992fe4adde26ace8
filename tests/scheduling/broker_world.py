"""A broker with a real journal, and workers that are played by the test."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client.new_tasks import own_needs
from adaptor.donation.situation import DonationRules
from adaptor.journal.journal import Journal
from adaptor.journal.recovery import load_bag, recover
from adaptor.model import AttemptOutcome, CraftedRequest, PilotState, Request, TaskState
from adaptor.protocol.messages import AttemptKey, Ending, Hello, Leaving, Orders, Report, Result
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.losses import PilotEnd
from adaptor.scheduling.state import SiteTerms
from tests.journal.bags import add, add_bag

TERMS = SiteTerms(initial_tr=60.0, growth_factor=2, longest=3600.0, donation=DonationRules())
PILOT_TIME = 10_000.0


class Player:
    """A worker: what it holds, what runs, and the results that nobody has acknowledged yet."""

    def __init__(self, id: str, pilot: int, processors: int, deadline: float, memory: int = 1 << 30) -> None:
        self.id = id
        self.pilot = pilot
        self.processors = processors
        self.memory = memory
        self.deadline = deadline
        self.queued: list[AttemptKey] = []
        self.among: dict[AttemptKey, int] = {}
        """Number of running attempts of their bag below which queued leases start."""
        self.running: dict[AttemptKey, float] = {}
        self.unacknowledged: dict[AttemptKey, Result] = {}
        self.told_to_leave = False
        self.node = ""  # empty: one of its own

    def hello(self) -> Hello:
        return Hello(
            pilot=self.pilot,
            node=self.node or f"node-{self.id}",
            pid=1,
            version="test",
            processors=self.processors,
            memory=self.memory,
            deadline=self.deadline,
            holding=[*self.queued, *self.running],
            started=list(self.running),
            unacknowledged=list(self.unacknowledged.values()),
        )

    def obey(self, draft: Orders, cpus: dict[int, int], now: float) -> None:
        for key in draft.acknowledged:
            self.unacknowledged.pop(key, None)
        self.queued += [lease.key for lease in draft.leases]
        self.among.update((lease.key, lease.among) for lease in draft.leases)
        for key in draft.abort:
            self.end(key, Ending.ABORTED if key in self.running else Ending.RETURNED, now)
        for key in draft.give_back:
            if key in self.queued:
                self.end(key, Ending.RETURNED, now)
        self.told_to_leave = self.told_to_leave or bool(draft.leave)
        self.start(cpus, now)

    def start(self, cpus: dict[int, int], now: float) -> list[AttemptKey]:
        begun = []
        while (ready := self.ready()) and cpus[ready[0].bag] <= self.free(cpus):
            key = ready[0]
            self.queued.remove(key)
            self.running[key] = now
            begun.append(key)
        return begun

    def ready(self) -> list[AttemptKey]:
        """The queued leases that do not wait for others of their bag to end."""
        runs = Counter(key.bag for key in self.running)
        return [key for key in self.queued if not self.among[key] or runs[key.bag] < self.among[key]]

    def free(self, cpus: dict[int, int]) -> int:
        return self.processors - sum(cpus[key.bag] for key in self.running)

    def end(
        self,
        key: AttemptKey,
        ending: Ending,
        now: float,
        exit_code: int | None = None,
        peak_memory: int = 0,
    ) -> None:
        started = self.running.pop(key, None)
        if started is None:
            if key not in self.queued:
                return
            self.queued.remove(key)
            result = Result(key=key, ending=ending)
        else:
            result = Result(
                key=key,
                ending=ending,
                started=started,
                wall=now - started,
                exit_code=exit_code,
                peak_memory=peak_memory,
            )
        self.unacknowledged[key] = result


class World:
    """Time, a broker, its journal, and the workers."""

    def __init__(self, directory: Path, sites: tuple[str, ...] = ("site",)) -> None:
        self.directory = directory
        self.now = time.time()
        self.terms = dict.fromkeys(sites, TERMS)
        self.journal = Journal(directory)
        self.broker: Broker = recover(self.journal, dict(self.terms), self.now)
        self.players: dict[str, Player] = {}
        self.sites: dict[str, str] = {}
        self.cpus: dict[int, int] = {}
        self.lost_orders = False

    # --- bags

    def submit(self, tasks: int, **options: object) -> int:
        spec = BagSpec(
            name="b",
            cwd="/",
            output="/nowhere/{bag}",
            environment={},
            **options,  # type: ignore[arg-type]
        )
        inputs = [TaskInput(command=f"task {number}") for number in range(tasks)]
        id = add_bag(self.journal, spec, inputs, self.now)
        self.cpus[id] = spec.cpus
        bag = Bag(id, self.journal.bag_spec(id), tasks)
        bag.fill()
        self.broker.add_bag(bag, self.now, new=True)
        self.commit()
        return id

    def open(self, **options: object) -> int:
        """An open bag without tasks."""
        spec = BagSpec(name="b", cwd="/", output="/nowhere", environment={}, **options)  # type: ignore[arg-type]
        id = add_bag(self.journal, spec, [], self.now, open=True)
        self.cpus[id] = spec.cpus
        bag = load_bag(self.journal, id)
        self.broker.add_bag(bag, self.now)
        self.commit()
        return id

    def append(self, bag: int, key: str, tasks: Sequence[TaskInput], *, crash: bool = False) -> int:
        """The number of the first task. `crash`: the daemon is killed once the journal has the tasks."""
        known = self.broker.state.bags.get(bag)
        done = add(self.journal, bag, key, tasks, gated=known is not None and known.gated)
        if crash:
            self.restart()
        elif not done.repeated:
            needs = {done.first + place: own for place, own in own_needs(tasks).needs.items()}
            self.broker.append(bag, done.tasks, self.now, done.links, needs)
            self.commit()
        return done.first

    def state(self, bag: int, task: int) -> TaskState:
        return load_bag(self.journal, bag).state(task)

    def states(self, bag: int) -> list[str]:
        rows = self.journal.connection.execute("SELECT state FROM task WHERE bag = ? ORDER BY number", (bag,))
        return [state for (state,) in rows]

    # --- workers

    def join(
        self,
        id: str,
        processors: int = 1,
        *,
        site: str = "site",
        time_left: float = PILOT_TIME,
        pilot: int = 0,
        donated: DonatedNode | None = None,
        node: str = "",
    ) -> Player:
        """`donated`: the pilot runs on such a node; `node`: empty: one of its own."""
        if not pilot:
            crafted = CraftedRequest(Request(processors, int(time_left)), None, 1, "because")
            idle = f"node-{id}" if donated else ""
            pilot = self.journal.add_pilots(site, "tag-", [crafted], self.now, node=idle)[0]
            if donated:
                self.broker.use_node(pilot, donated)
        player = self.players[id] = Player(id, pilot, processors, self.now + time_left)
        player.node = node
        self.sites[id] = site
        self.greet(player)
        return player

    def greet(self, player: Player) -> None:
        message = player.hello()
        self.broker.hello(player.id, message, self.sites[player.id], self.now)
        self.commit()
        for result in message.unacknowledged:
            player.unacknowledged.pop(result.key, None)
        self.report(player)

    def report(self, player: Player, heartbeat: bool = False) -> None:
        free = player.free(self.cpus)
        message = Report(
            results=list(player.unacknowledged.values()),
            started=list(player.running),
            free_processors=free if not player.ready() else 0,
            free_memory=player.memory,
            queued=len(player.queued),
            load=[(key, self.now - start) for key, start in player.running.items()] if heartbeat else [],
        )
        self.broker.report(player.id, message, self.now)
        self.commit()

    def finish(
        self, player: Player, key: AttemptKey | None = None, exit_code: int = 0, took: float = 1.0
    ) -> None:
        self.now += took
        chosen = key or next(iter(player.running))
        player.end(chosen, Ending.EXITED, self.now, exit_code)
        player.start(self.cpus, self.now)
        self.report(player)

    def leave(self, player: Player, why: Leaving) -> None:
        for key in [*player.queued]:
            player.end(key, Ending.RETURNED, self.now)
        for key in [*player.running]:
            player.end(key, Ending.ENDED, self.now)
        results = list(player.unacknowledged.values())
        del self.players[player.id]
        self.broker.goodbye(player.id, why, results, self.now)
        self.commit()

    def lose(self, player: Player) -> None:
        """`kill -9` of a worker, which the daemon notices."""
        del self.players[player.id]
        self.broker.lost(player.id, AttemptOutcome.LOST, self.now, self.now)
        self.commit()

    # --- the daemon's part

    def end_pilot(
        self, pilot: int, ended: PilotState, started: float | None = None, *, by_us: bool = False
    ) -> None:
        """The scheduler tells how a pilot has ended; by default it had started long ago."""
        since = self.now - 10_000 if started is None else started
        self.broker.explain_losses(PilotEnd(pilot, "site", ended, since, self.now, by_us), self.now)
        self.broker.forget_pilot(pilot)
        self.commit()

    def retry(self, bag: int) -> None:
        self.broker.retry(load_bag(self.journal, bag), self.now)
        self.commit()

    def commit(self) -> None:
        self.commit_to_journal()
        self.hand_out()

    def commit_to_journal(self) -> None:
        self.broker.advance(self.now)
        self.written, self._drafts = self.broker.drain()
        self.journal.write(self.written, self.now)

    def hand_out(self) -> None:
        drafts, self._drafts = self._drafts, {}
        for id, draft in drafts.items():
            player = self.players.get(id)
            if player is None or self.lost_orders:
                continue
            player.obey(draft, self.cpus, self.now)
            if draft.say_hello:
                self.greet(player)

    def restart(self) -> None:
        """`kill -9` of the daemon, and a new one."""
        self.journal.close()
        self.journal = Journal(self.directory)
        self.broker = recover(self.journal, dict(self.terms), self.now)

    def run_to_the_end(self) -> None:
        """Every task that is running finishes, until nothing is left."""
        self.join("the last", processors=8)
        for _ in range(1000):
            if not self.broker.busy:
                return
            for player in list(self.players.values()):
                if player.running:
                    self.finish(player)
                else:
                    self.now += 1.0
                    self.report(player)
        raise AssertionError(
            f"tasks are left over: {self.journal.connection.execute('SELECT * FROM bag').fetchall()}"
        )

    def close(self) -> None:
        self.journal.close()
