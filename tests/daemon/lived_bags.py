"""Bags that live from their submission to their end, with a scheduler and workers that the test plays."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from adaptor.daemon.upkeep.retention import Retention
from adaptor.daemon.worker_endpoint import WorkerEndpoint
from adaptor.protocol.messages import (
    AttemptKey,
    Ending,
    FromWorker,
    Goodbye,
    Hello,
    Leaving,
    Report,
    Result,
    encode,
)
from adaptor.reports import JobState
from tests.daemon.budgeted_site import set_budget, steps
from tests.daemon.fake_site import FakeSite


def endpoint_of(site: FakeSite) -> WorkerEndpoint:
    def stall(error: Exception) -> None:
        raise error

    return WorkerEndpoint(site.state.core, {"here": site.state}, stall)


def hear(site: FakeSite, worker: str, *messages: FromWorker) -> None:
    for message in messages:
        asyncio.run(endpoint_of(site).hear([(worker.encode(), encode(message))]))


def hello(pilot: int = 1, **others: Any) -> Hello:
    known = {"node": "n", "pid": 1, "version": "test", "processors": 2, "memory": 1 << 30}
    return Hello(**{"pilot": pilot, "deadline": time.time() + 3600, **known, **others})


FREE = Report(free_processors=2, free_memory=1 << 30)
"""A worker of two processors is idle."""


def leased(site: FakeSite, worker: str) -> list[AttemptKey]:
    return list(site.state.core.broker.state.workers[worker].held)


def work(site: FakeSite, worker: str, keys: list[AttemptKey]) -> None:
    """Run what it holds, and ask for more."""
    done = [
        Result(key=key, ending=Ending.EXITED, started=time.time() - 1, wall=0.5, exit_code=0) for key in keys
    ]
    hear(site, worker, Report(started=keys), Report(results=done, free_processors=2, free_memory=1 << 30))


def begin(site: FakeSite) -> int:
    """The newest pilot of a site, which runs from now on, with a worker `w<pilot>`."""
    steps(site)
    pilot = max(site.state.pilots)
    site.backend.say(site.state.pilots[pilot].tag, JobState.RUNNING)
    steps(site)
    hear(site, f"w{pilot}", hello(pilot), FREE)
    return pilot


def finish(site: FakeSite, pilot: int) -> None:
    """Run all tasks in a pilot, which ends, as do those that nobody needs any more."""
    worker = f"w{pilot}"
    while keys := leased(site, worker):
        work(site, worker, keys)
    hear(site, worker, Goodbye(why=Leaving.IDLE, results=[], took=0.0))
    end_pilots(site, pilot)
    assert not site.state.pilots


def end_pilots(site: FakeSite, pilot: int) -> None:
    """A pilot completes, and all others are cancelled."""
    for other in site.state.pilots.values():
        site.backend.say(other.tag, JobState.COMPLETED if other.id == pilot else JobState.CANCELLED)
    steps(site)


def live(site: FakeSite, tasks: int = 3, credits: float | None = None, **options: Any) -> int:
    """A bag, with such options, from its submission to the end of its only pilot."""
    bag = site.submit_bag(tasks, **options)
    if credits is not None:
        set_budget(site, bag, credits)
    finish(site, begin(site))
    return bag


def keeper(site: FakeSite, keep: float | None = None) -> Retention:
    return Retention(site.state.core, keep)


def forget(site: FakeSite, *bags: int) -> None:
    """Forget bags and compact the journal."""
    house = keeper(site)
    house.forget(list(bags))
    asyncio.run(house.compact(lambda: True))


def counts(site: FakeSite) -> dict[str, int]:
    """Rows by table."""
    tables = ("bag", "task", "attempt", "pilot", "decision", "credit", "forgotten", "forecast")
    db = site.journal.connection
    return {table: db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables}
