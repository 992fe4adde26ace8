"""A site whose scheduler is played by the test, around a real journal and a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.config.schema import SiteConfig
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.sites import terms_of
from adaptor.daemon.treasury import costs_of
from adaptor.journal.journal import Journal
from adaptor.model import Allowed, EndedJob, Limits, PendingJob, QueueState, Request, RunningJob
from adaptor.reports import JobReport, JobState, NodeReport, OwnJob
from adaptor.resources import Node
from adaptor.scheduling.bag import Bag
from adaptor.units import Duration
from backends.base import PilotOrder, SchedulerError, SubmitRefused
from backends.ceilings import Ceilings
from tests.journal.bags import add_bag
from tests.living import PATIENCE

LIMITS = Limits(max_pending_requests=2, max_proc=2, max_tr=3600)


class FakeBackend:
    time_resolution = 1
    slot_margin = 0
    shrink_margin: int | None = None
    can_release = False
    can_follow = False
    can_reshape = True
    most_in_array = 1
    backfilled: int | None = None

    def __init__(self) -> None:
        self.reports: dict[str, JobReport] = {}
        self.orders: list[PilotOrder] = []
        self.cancelled: list[str] = []
        self.ordered: list[OwnJob] = []
        """The same with the tags that the orders named."""
        self.shown_nodes: list[NodeReport] = []
        self.node_sizes: tuple[Node, ...] = ()
        self.running: tuple[RunningJob, ...] = ()
        self.pending: tuple[PendingJob, ...] = ()
        self.limits: dict[str, float] = {}
        """Time limits of running jobs, seconds."""
        self.unknown: tuple[str, ...] = ()
        self.allowed = Allowed()
        self.ended: list[EndedJob] = []
        """Jobs in its records."""
        self.ended_problem: Exception | None = None
        self.ended_waits: threading.Event | None = None
        """Set when its records may be read."""
        self.clock: Callable[[], float] = lambda: time.time()
        """Time of its queue, epoch seconds."""
        self.most: Ceilings | None = None
        """Most that a request may have."""
        self.silent: SchedulerError | None = None
        """Raised instead of any answer."""
        self.on_submit: SchedulerError | None = None
        """Raised by submit."""
        self.refuses: Callable[[PilotOrder], bool] = lambda _: False
        """Whether it says no to a request."""
        self.takes_it_all_the_same = False
        """Whether a failing submit, or a failing change, has reached the queue."""
        self.on_reshape: BaseException | None = None
        """Raised by reshape."""
        self.changed: list[PilotOrder] = []
        """The changes that were asked for."""

    def queue_state(self) -> QueueState:
        self._speak()
        return QueueState(
            now=self.clock(),
            processors=8,
            running=self.running,
            pending=self.pending,
            nodes=self.node_sizes,
            allowed=self.allowed,
            limits=self.limits,
            unknown=self.unknown,
        )

    def nodes(self, lent: Collection[str]) -> list[NodeReport]:
        self._speak()
        return list(self.shown_nodes)

    def submit(self, order: PilotOrder) -> str:
        self.orders.append(order)
        if self.refuses(order):
            raise SubmitRefused("Memory specification can not be satisfied")
        if self.on_submit is None or self.takes_it_all_the_same:
            self.say(order.tag, JobState.QUEUED)
        if self.on_submit is not None:
            raise self.on_submit
        return self.reports[order.tag].id

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        self._speak()
        return [
            report for tag, report in self.reports.items() if report.id in ids or tag.startswith(tag_prefix)
        ]

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        self._speak()
        self.ordered += jobs
        self.cancelled += [job.id for job in jobs]
        for tag, report in list(self.reports.items()):
            if report.own in jobs and report.state.ended is None:
                self.say(tag, JobState.CANCELLED)

    def reshape(self, id: str, order: PilotOrder) -> None:
        self.changed.append(order)
        if self.on_reshape is None or self.takes_it_all_the_same:
            self.asks_for(order.tag, order.request)
        if self.on_reshape is not None:
            raise self.on_reshape

    def asks_for(self, tag: str, request: Request) -> None:
        """Report another request for a job from now on."""
        asked = {"processors": request.p, "limit": float(request.tr)}
        self.reports[tag] = msgspec.structs.replace(self.reports[tag], **asked)

    def release(self, job: OwnJob, nodes: Collection[str]) -> None:
        raise AssertionError("not offered")

    def ended_jobs(self) -> list[EndedJob]:
        if self.ended_waits is not None:
            self.ended_waits.wait(PATIENCE)
        if self.ended_problem is not None:
            raise self.ended_problem
        return self.ended

    def advertised_limits(self) -> Limits:
        self._speak()
        return LIMITS

    def ceilings(self, partition: str = "") -> Ceilings | None:
        return self.most

    def say(self, tag: str, state: JobState, never: str = "", nodes: tuple[str, ...] = ()) -> None:
        """Report another state of a job from now on."""
        start = None if state in (JobState.QUEUED, JobState.CANCELLED) else time.time() - 5
        end = time.time() if state.ended else None
        id = f"job-{tag.rpartition('.')[2]}"
        self.reports[tag] = JobReport(
            id=id, tag=tag, state=state, start=start, end=end, never=never, nodes=nodes
        )

    def _speak(self) -> None:
        if self.silent is not None:
            raise self.silent


class FakeServer:
    worker_port = 4711

    async def send_worker(self, identity: bytes, data: bytes) -> None:
        """Nobody is there."""

    def machine_answers(self, worker: str) -> bool:
        return False


CONFIG = SiteConfig(backend="local", heuristic="adaptive", initial_tr=Duration(60))


class FakeSite:
    limits = LIMITS
    config = CONFIG

    def __init__(self, directory: Path, backend: FakeBackend | None = None) -> None:
        self.directory = state_directory(directory)
        self.backend = backend or FakeBackend()
        self.journal = Journal(directory)
        self.state = self._state()

    def _state(self) -> Site:
        terms, costs = {"here": terms_of(self.config, self.limits)}, costs_of({"here": self.config})
        core = Core(self.directory, self.journal, FakeServer(), terms, costs)  # type: ignore[arg-type]
        state = Site("here", self.config, self.backend, self.limits, core)
        state.load_pilots()
        return state

    @property
    def running(self) -> Any:
        """The daemon as far as questions about its site reach it."""
        return SimpleNamespace(core=self.state.core, sites={"here": self.state})

    def restart(self) -> None:
        """A new daemon on the same journal."""
        self.journal.close()
        self.journal = Journal(self.directory)
        self.state = self._state()

    def submit_bag(self, tasks: int, budget: int | None = None, **options: Any) -> int:
        """Its number; `budget` in millionths of a credit, `options` are those of the bag."""
        return submit_bag(self.state.core, tasks, budget, **options).id

    def pilots(self) -> list[tuple[int, str, str]]:
        """Number, state and end reason of every pilot, from the journal."""
        rows = self.journal.connection.execute("SELECT id, state, end_reason FROM pilot ORDER BY id")
        return [(id, state, reason) for id, state, reason in rows]

    def states(self) -> list[str]:
        return [state for _, state, _ in self.pilots()]

    def told(self, kind: str) -> list[str]:
        return told(self.journal, kind)


def state_directory(directory: Path) -> Path:
    directory.mkdir(mode=0o700, exist_ok=True)
    (directory / "pilots").mkdir(mode=0o700, exist_ok=True)
    return directory


def submit_bag(core: Core, tasks: int, budget: int | None = None, **options: Any) -> Bag:
    spec = BagSpec(**{"name": "b", "cwd": "/", "output": "/nowhere", "environment": {}, **options})
    bag = Bag(add_bag(core.journal, spec, [TaskInput("true")] * tasks, time.time()), spec, tasks)
    bag.fill()
    if budget is not None:
        core.treasury.set_budget(bag.id, budget)
    if budget is not None or spec.aims:
        core.broker.keep_apart(bag.id)
    core.broker.add_bag(bag, time.time())
    return bag


def told(journal: Journal, kind: str, site: str = "%") -> list[str]:
    """Decisions in words."""
    select = "SELECT text FROM decision WHERE kind = ? AND site LIKE ? ORDER BY id"
    return [text for (text,) in journal.connection.execute(select, (kind, site))]
