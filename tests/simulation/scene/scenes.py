"""A scene of two sites, and the two who can decide in it: the simulation's driver and the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.entries import Budget
from adaptor.config.donation import DonationConfig
from adaptor.config.schema import Duration, SiteConfig
from adaptor.crafting.situation import SubmitRequest, Withdraw
from adaptor.daemon import step as daemon_step
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.sites import settings_of, terms_of
from adaptor.daemon.treasury import costs_of
from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.observation import take_snapshot
from adaptor.decisions.pilots import Arrival
from adaptor.decisions.snapshot import Snapshot
from adaptor.journal.journal import Journal
from adaptor.model import EndedJob, Limits, QueueState
from adaptor.protocol.messages import AttemptKey, Orders
from adaptor.reports import JobReport, NodeReport, OwnJob
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import AttemptEnd, AttemptStart, Changes
from adaptor_simulation.driver import Decided, SimulatedDriver
from adaptor_simulation.machine import Machine, parse_machine
from adaptor_simulation.scene.site import ScenePlace, SimulatedSite
from adaptor_simulation.scene.world import World
from adaptor_simulation.worker import Attempt
from backends.base import ChangeRefused, PilotOrder
from tests.journal import bags
from tests.simulation.trace_strategies import jobs_from

LocalJobs = list[tuple[int, int, int, int]]
"""Jobs of the local users: submission, processors, limit and run time."""


class SceneBag(msgspec.Struct, frozen=True, kw_only=True):
    spec: BagSpec
    tasks: int
    seconds: int
    """Seconds of the shortest task; others take up to 6 s more."""
    budget: int | None = None
    """Millionths of a credit."""
    slower: dict[str, int] = {}
    """By name of a site: how many times as long its tasks take there."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    sites: dict[str, tuple[SiteConfig, int, LocalJobs]]
    """By name: the configuration, the processors, the local jobs."""
    bags: tuple[SceneBag, ...]
    until: int = 6000
    machines: dict[str, Machine] = {}
    """By name of a site: its processors as nodes; the others count processors."""

    partitions: dict[str, dict[str, tuple[Limits, frozenset[str]]]] = {}
    """By name of a site: its partitions with their limits and nodes."""
    slot_margin: int = 0
    shrink_margin: int | None = None
    """Margin of `SiteRules`, of all sites."""
    pending: int = 2
    """Requests that may wait or run at each site."""
    widest: int | None = None
    """Processors of a request; None: all of its site."""

    def limits(self, name: str) -> Limits:
        most = self.widest or self.sites[name][1]
        whole = Limits(max_pending_requests=self.pending, max_proc=most, max_tr=3600)
        parts = {each: limits for each, (limits, _) in self.partitions.get(name, {}).items()}
        return msgspec.structs.replace(whole, partitions=parts)

    def simulated(self) -> dict[str, SimulatedSite]:
        found = {}
        for name, (config, processors, jobs) in self.sites.items():
            settings = settings_of(name, config, SceneBackend(None), self.limits(name), 15.0)
            rules = msgspec.structs.replace(
                settings.rules, slot_margin=self.slot_margin, shrink_margin=self.shrink_margin
            )
            settings = msgspec.structs.replace(settings, rules=rules)
            machine = self.machines.get(name)
            place = ScenePlace(
                settings=settings,
                jobs=jobs_from(jobs),
                processors=processors,
                machine=machine,
                chunk=3,
                partitions={each: nodes for each, (_, nodes) in self.partitions.get(name, {}).items()},
            )
            found[name] = SimulatedSite(place)
        return found

    @property
    def configs(self) -> dict[str, SiteConfig]:
        return {name: config for name, (config, _, _) in self.sites.items()}


def spec(**wishes: object) -> BagSpec:
    return msgspec.structs.replace(BagSpec(name="b", cwd="/", output="/o", environment={}), **wishes)


def two_sites() -> Scene:
    """`near` is dear and donates its idle nodes, `far` is cheap; a budget, a deadline, a transparent bag."""
    donation = DonationConfig(mode="agent", useful_time=Duration(60))
    near = SiteConfig(backend="local", initial_tr=Duration(60), pad=Duration(10), donation=donation)
    far = SiteConfig(backend="local", initial_tr=Duration(60), pad=Duration(10))
    price = near.price
    near = msgspec.structs.replace(near, price=msgspec.structs.replace(price, explicit=9.0, donated=1.0))
    far = msgspec.structs.replace(far, price=msgspec.structs.replace(price, explicit=3.0))
    return Scene(
        sites={
            "near": (near, 8, [(0, 4, 900, 600), (100, 8, 600, 300), (2000, 6, 900, 500)]),
            "far": (far, 8, [(0, 8, 300, 200), (900, 4, 900, 800)]),
        },
        bags=(
            SceneBag(spec=spec(), tasks=60, seconds=50, budget=2_600_000),
            SceneBag(spec=spec(deadline=1500.0), tasks=40, seconds=30),
            SceneBag(spec=spec(allocation="transparent"), tasks=30, seconds=40),
            SceneBag(spec=spec(), tasks=40, seconds=20),
        ),
    )


def on_nodes() -> Scene:
    """Local jobs in chunks of 3 leave one processor idle on each of 4 nodes; `far` has nodes of two sizes."""
    plain = SiteConfig(backend="local", initial_tr=Duration(60), pad=Duration(10))
    return Scene(
        sites={
            "near": (plain, 16, [(0, 12, 900, 600), (100, 6, 600, 300), (2000, 12, 900, 500)]),
            "far": (plain, 11, [(0, 6, 300, 200), (900, 3, 900, 800)]),
        },
        machines={"near": parse_machine("4x4"), "far": parse_machine("1x3+2x4")},
        bags=(
            SceneBag(spec=spec(cpus=3), tasks=20, seconds=50),
            SceneBag(spec=spec(), tasks=30, seconds=30),
        ),
    )


def of_two_partitions() -> Scene:
    """Four nodes of 4: `quick` has the last two for ten minutes, `slow` all but the last for an hour."""
    site = SiteConfig(backend="local", heuristic="adaptive", initial_tr=Duration(60), pad=Duration(10))
    quick = Limits(max_pending_requests=2, max_proc=8, max_tr=600)
    slow = Limits(max_pending_requests=2, max_proc=12, max_tr=3600)
    return Scene(
        sites={"here": (site, 16, [(0, 6, 900, 600), (2000, 12, 900, 500)])},
        machines={"here": parse_machine("4x4")},
        partitions={
            "here": {
                "quick": (quick, frozenset({"n3", "n4"})),
                "slow": (slow, frozenset({"n1", "n2", "n3"})),
            }
        },
        bags=(
            SceneBag(spec=spec(), tasks=40, seconds=50),
            SceneBag(spec=spec(cpus=2), tasks=8, seconds=700),
        ),
    )


class Played(msgspec.Struct):
    """Outcome of a scene."""

    decided: list[Decided]
    ends: list[tuple[int, int, str, float]]
    """Bag, task, state and time of each task's end."""
    charged: dict[int, int]
    """By bag, millionths of a credit."""

    def kept_submissions(self) -> list[float]:
        """Times of requests that were sent and not withdrawn; pilots are numbered as their requests come."""
        sent = [each.at for each in self.decided if isinstance(each.action, SubmitRequest)]
        withdrawn = {each.action.pilot for each in self.decided if isinstance(each.action, Withdraw)}
        return [at for pilot, at in enumerate(sent, 1) if pilot not in withdrawn]


def simulate(scene: Scene) -> Played:
    """By the simulation's own driver."""
    sites = scene.simulated()
    costs = costs_of(scene.configs)
    terms = {name: terms_of(config, scene.limits(name)) for name, config in scene.configs.items()}
    driver = SimulatedDriver(sites, Broker(terms), {name: each.tariff for name, each in costs.items()})
    world = World(sites, driver)
    for number, given in enumerate(scene.bags, 1):
        if given.budget is not None:
            driver.ledger.set_budget(Budget(amount=given.budget, bag=number), 0.0)
        add_bag(world, driver.broker, number, given)
    world.run(scene.until)
    return _played(
        world, driver.log, {n: driver.ledger.of_bag(n).used for n in range(1, len(scene.bags) + 1)}
    )


def run_daemon(scene: Scene, directory: Path) -> Played:
    """By the daemon: its journal, its sites, its steps; only clock, schedulers and workers are played."""
    daemon = DaemonDriver(scene, directory)
    try:
        world = World(daemon.simulated, daemon)
        daemon.world = world
        for given in scene.bags:
            number = bags.add_bag(daemon.core.journal, given.spec, [TaskInput("true")] * given.tasks, 0.0)
            if given.budget is not None:
                daemon.core.treasury.set_budget(number, given.budget)
            add_bag(world, daemon.broker, number, given)
        with (
            patch("adaptor.daemon.step.nodes_at_once", return_value=1),  # else threads race for the order
            patch("adaptor.daemon.core.take_snapshot", _foreseeing_what_it_must),
        ):
            world.run(scene.until)
        ledger = daemon.core.treasury.ledger
        charged = {number: ledger.of_bag(number).used for number in range(1, len(scene.bags) + 1)}
        return _played(world, daemon.log, charged)
    finally:
        daemon.core.journal.close()


def _foreseeing_what_it_must(*given: Any, **_: Any) -> Snapshot:
    """Snapshot as the simulation takes it: no user looks at its bags."""
    return take_snapshot(*given)


def add_bag(world: World, broker: Broker, number: int, given: SceneBag) -> None:
    bag = Bag(number, given.spec, given.tasks)
    bag.fill()
    if given.budget is not None or given.spec.aims:
        broker.keep_apart(number)

    def takes(key: AttemptKey, site: str) -> Attempt:
        return Attempt(float((given.seconds + key.task % 7) * given.slower.get(site, 1)))

    world.add_bag(bag, takes)


def _played(world: World, decided: list[Decided], charged: dict[int, int]) -> Played:
    ends = [(each.bag, each.task, each.state.value, each.at) for each in world.ended]
    return Played(decided=decided, ends=ends, charged=charged)


class SceneBackend:
    """A simulated site behind the questions that the daemon asks a scheduler."""

    time_resolution = 1
    can_release = False
    can_reshape = True
    most_in_array = 1
    backfilled: int | None = None
    loopback = True

    def __init__(self, site: SimulatedSite | None) -> None:
        self._site = site

    @property
    def site(self) -> SimulatedSite:
        assert self._site is not None
        return self._site

    @property
    def slot_margin(self) -> int:
        return 0 if self._site is None else self.site.place.settings.rules.slot_margin

    @property
    def shrink_margin(self) -> int | None:
        return None if self._site is None else self.site.place.settings.rules.shrink_margin

    def queue_state(self) -> QueueState:
        return self.site.queue_state()

    def nodes(self, lent: Collection[str]) -> list[NodeReport]:
        return self.site.nodes()

    def submit(self, order: PilotOrder) -> str:
        pilot = int(order.environment["ADAPTOR_PILOT"])
        return self.site.submit(pilot, order.tag, order.request, order.node, order.task, order.partition)

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        return self.site.jobs()

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        self.site.cancel([job.id for job in jobs])

    def reshape(self, id: str, order: PilotOrder) -> None:
        if not self.site.reshape(id, order.request, order.task, order.partition):
            raise ChangeRefused("it has started")

    def release(self, id: str, nodes: Collection[str]) -> None:
        raise AssertionError("not offered")

    def ended_jobs(self) -> list[EndedJob]:
        return []

    def advertised_limits(self) -> Limits:
        return self.site.place.settings.rules.limits


class _NoServer:
    worker_port = 4711

    async def send_worker(self, identity: bytes, data: bytes) -> None:
        """The workers of the world take their orders from the broker."""


class DaemonDriver:
    """The daemon as the decider of a world."""

    def __init__(self, scene: Scene, directory: Path) -> None:
        (directory / "pilots").mkdir(parents=True, mode=0o700)
        self.simulated = scene.simulated()
        self.world: World | None = None
        self.log: list[Decided] = []
        terms = {name: terms_of(config, scene.limits(name)) for name, config in scene.configs.items()}
        self.core = Core(
            directory,
            Journal(directory),
            _NoServer(),  # type: ignore[arg-type]
            terms,
            costs_of(scene.configs),
            clock=self._clock,
        )
        self.core.commit = self._commit  # type: ignore[method-assign]
        self._drain = self.core.broker.drain
        self.core.broker.drain = self._drain_into_journal  # type: ignore[method-assign]
        self.sites = {
            name: Site(
                name, config, SceneBackend(self.simulated[name]), scene.limits(name), self.core, poll=15.0
            )
            for name, config in scene.configs.items()
        }

    @property
    def broker(self) -> Broker:
        return self.core.broker

    def _clock(self) -> float:
        return float(self.world.now) if self.world is not None else 0.0

    async def _commit(self) -> Changes:
        """The workers of the world drain the broker in the same second."""
        return Changes()

    def _drain_into_journal(self) -> tuple[Changes, dict[str, Orders]]:
        changes, drafts = self._drain()
        self.core.journal.write(changes, self._clock(), self.core.treasury.late_results(changes))
        return changes, drafts

    def called(self, site: str, pilot: int, now: float) -> None:
        called = self.sites[site].pilots.get(pilot)
        if called is not None:
            self.sites[site].memory.keep(called.heard(now, called.node, Arrival(called.request.p)))

    def attempt_started(self, started: AttemptStart) -> None:
        for site in self.sites.values():
            if started.pilot in site.pilots:
                site.memory.change(site.pilots[started.pilot], worked=True)

    def attempt_ended(self, ended: AttemptEnd) -> None:
        """The journal has it."""

    def step(self, site: str, now: float) -> Iterable[str]:
        def recorded(snapshot: Snapshot) -> Decision:
            found = decide(snapshot)
            self.log += [Decided(snapshot.now, snapshot.site, action) for action in found.actions]
            return found

        daemon_step.decide, before = recorded, daemon_step.decide
        try:
            asyncio.run(daemon_step.step(self.sites[site]))
        finally:
            daemon_step.decide = before
        woken = [name for name, wake in self.core.wakes.items() if wake.is_set()]
        for name in woken:
            self.core.wakes[name].clear()
        return woken
