"""A site played by the test whose idle nodes are donated: its scheduler, its nodes, and our workers there."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection
from pathlib import Path

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.sites import terms_of
from adaptor.daemon.step import step
from adaptor.daemon.treasury import costs_of
from adaptor.decisions.pilots import Arrival, Pilot
from adaptor.donation.situation import NodeUse
from adaptor.model import Limits
from adaptor.protocol.messages import Hello, Leaving, Report
from adaptor.reports import JobState, NodeReport
from adaptor.scheduling.bag import Bag
from adaptor.units import Duration
from tests.daemon.fake_site import FakeBackend, FakeServer, FakeSite

LIMITS = Limits(max_pending_requests=2, max_proc=8, max_tr=7200)
PREEMPTIBLE = DonationConfig(mode="preemptible", partition="scavenger")


class DonatingBackend(FakeBackend):
    def __init__(self) -> None:
        super().__init__()
        self.known = {
            f"n{number}": NodeReport(name=f"n{number}", processors=4, use=NodeUse.IDLE)
            for number in range(1, 5)
        }
        self.asked_beside: list[set[str]] = []

    def nodes(self, lent: Collection[str]) -> list[NodeReport]:
        self._speak()
        self.asked_beside.append(set(lent))
        return list(self.known.values())

    def set(self, name: str, use: NodeUse = NodeUse.IDLE, planned: float = math.inf) -> None:
        self.known[name] = msgspec.structs.replace(self.known[name], use=use, planned=planned)

    @property
    def donated(self) -> dict[str, str]:
        """The tags of the pilots that run or wait, by node."""
        return {
            order.node: order.tag
            for order in self.orders
            if order.node and order.tag in self.reports and self.reports[order.tag].state.ended is None
        }


class DonatingSite(FakeSite):
    """`here` with four idle nodes of four processors."""

    backend: DonatingBackend

    def __init__(self, directory: Path, donation: DonationConfig = PREEMPTIBLE, **config: object) -> None:
        self.config = SiteConfig(
            backend="slurm",
            heuristic="adaptive",
            initial_tr=Duration(60),
            pad=Duration(10),
            donation=donation,
        )
        self.config = msgspec.structs.replace(self.config, **config)
        super().__init__(directory)
        self.backend = DonatingBackend()
        self.state = self._state()

    def _state(self) -> Site:
        terms = {"here": terms_of(self.config, LIMITS)}
        costs = costs_of({"here": self.config})
        core = Core(self.directory, self.journal, FakeServer(), terms, costs)  # type: ignore[arg-type]
        state = Site("here", self.config, self.backend, LIMITS, core)
        state.load_pilots()
        return state

    def submit(
        self, tasks: int, allocation: str = "transparent", budget: int | None = None, **options: object
    ) -> int:
        """`budget` in millionths of a credit."""
        spec = BagSpec(
            name="b",
            cwd="/",
            output="/nowhere",
            environment={},
            allocation=allocation,  # type: ignore[arg-type]
            **options,  # type: ignore[arg-type]
        )
        id = self.journal.add_bag(spec, [TaskInput("true")] * tasks, time.time())
        bag = Bag(id, spec, tasks)
        bag.fill()
        core = self.state.core
        if budget is not None:
            core.treasury.set_budget(id, budget)
        if budget is not None or spec.aims:
            core.broker.keep_apart(id)
        core.broker.add_bag(bag, time.time())
        return id

    def step(self) -> None:
        asyncio.run(step(self.state))

    def start(self, node: str) -> str:
        """The pilot of a node starts, and its worker takes tasks; the worker's id."""
        tag = self.backend.donated[node]
        self.backend.say(tag, JobState.RUNNING)
        return self.greet(next(each for each in self.state.memory.donated if each.tag == tag))

    def greet(self, pilot: Pilot) -> str:
        """The worker of a donated node calls, and takes tasks; its id."""
        broker, now, node = self.state.core.broker, time.time(), pilot.node
        worker = f"w-{node}"
        self.state.memory.keep(pilot.heard(now, node, Arrival(pilot.request.p)))
        hello = Hello(
            pilot=pilot.id,
            node=node,
            pid=1,
            version="test",
            processors=pilot.request.p,
            memory=1 << 30,
            deadline=now + pilot.request.tr,
        )
        broker.hello(worker, hello, "here", now)
        broker.report(worker, Report(free_processors=pilot.request.p, free_memory=1 << 30), now)
        asyncio.run(self.state.core.commit())
        return worker

    def leave(self, worker: str, why: Leaving) -> None:
        self.state.core.broker.goodbye(worker, why, [], time.time())
        asyncio.run(self.state.core.commit())

    def holding(self, worker: str) -> int:
        return len(self.state.core.broker.state.workers[worker].held)
