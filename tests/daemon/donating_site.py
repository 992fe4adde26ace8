"""A site played by the test whose idle nodes are donated: its scheduler, its nodes, and our workers there."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from adaptor.config.donation import DonationConfig
from adaptor.daemon.step import step
from adaptor.decisions.pilots import Arrival, Pilot
from adaptor.donation.situation import NodeUse
from adaptor.model import Limits
from adaptor.protocol.messages import Leaving, Report
from adaptor.reports import JobState, NodeReport
from adaptor.units import Duration
from tests.daemon.fake_site import CONFIG, FakeBackend, FakeSite
from tests.daemon.lived_bags import hello

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

    limits = LIMITS

    def __init__(self, directory: Path, donation: DonationConfig = PREEMPTIBLE, **config: object) -> None:
        own = {"backend": "slurm", "pad": Duration(10), "donation": donation, **config}
        self.config = msgspec.structs.replace(CONFIG, **own)
        super().__init__(directory, DonatingBackend())

    def submit(self, tasks: int, allocation: str = "transparent", **options: Any) -> int:
        return self.submit_bag(tasks, allocation=allocation, **options)

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
        size = {"processors": pilot.request.p, "deadline": now + pilot.request.tr}
        broker.hello(worker, hello(pilot.id, node=node, **size), "here", now)
        broker.report(worker, Report(free_processors=pilot.request.p, free_memory=1 << 30), now)
        asyncio.run(self.state.core.commit())
        return worker

    def leave(self, worker: str, why: Leaving) -> None:
        self.state.core.broker.goodbye(worker, why, [], time.time())
        asyncio.run(self.state.core.commit())

    def holding(self, worker: str) -> int:
        return len(self.state.core.broker.state.workers[worker].held)
