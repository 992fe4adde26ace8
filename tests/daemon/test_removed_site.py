"""Workers of a site that the configuration no longer has: they do no harm, and their results count."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from adaptor.daemon.worker_endpoint import WorkerEndpoint
from adaptor.model import AttemptOutcome, CraftedRequest, Request
from adaptor.protocol.messages import AttemptKey, Ending, Goodbye, Hello, Leaving, Report, Result, encode
from tests.daemon.fake_site import FakeSite

WORKER = "1-n1-1"


def say(site: FakeSite, message: Hello | Report | Goodbye) -> None:
    def stall(error: Exception) -> None:
        raise error

    asyncio.run(
        WorkerEndpoint(site.state.core, {"here": site.state}, stall).hear(
            [(WORKER.encode(), encode(message))]
        )
    )


@pytest.fixture
def site(tmp_path: Path) -> FakeSite:
    """One task runs at a site that is gone after the daemon's restart."""
    made = FakeSite(tmp_path / "state")
    made.submit_bag(2)
    crafted = CraftedRequest(Request(1, 600), None, 1, "because")
    made.journal.add_pilot("here", made.state.tag_prefix, crafted, time.time())
    made.state.load_pilots()
    now = time.time()
    say(made, Hello(pilot=1, node="n1", pid=1, version="t", processors=1, memory=1 << 30, deadline=now + 600))
    say(made, Report(free_processors=1, free_memory=1 << 30))
    with made.journal.transaction() as db:
        db.execute("UPDATE pilot SET site = 'gone'")
    made.restart()
    return made


@pytest.mark.parametrize(
    ("ending", "why", "state"),
    [
        (Ending.EXITED, Leaving.IDLE, "done"),
        (Ending.RETURNED, Leaving.TOLD, "waiting"),
        (Ending.ENDED, Leaving.TIME_UP, "waiting"),
        (None, Leaving.SIGNAL, "waiting"),
    ],
)
def test_a_farewell(site: FakeSite, ending: Ending | None, why: Leaving, state: str) -> None:
    key, now = AttemptKey(1, 0, 1), time.time()
    results = [Result(key, ending, started=now - 5, wall=5.0, exit_code=0)] if ending else []
    say(site, Goodbye(why=why, results=results))
    assert WORKER not in site.state.core.broker.state.workers
    (found,) = site.journal.connection.execute("SELECT state FROM task WHERE number = 0").fetchone()
    assert found == state


def test_silence(site: FakeSite) -> None:
    def stall(error: Exception) -> None:
        raise error

    site.state.core.broker.state.workers[WORKER].seen = time.time() - 1000
    asyncio.run(WorkerEndpoint(site.state.core, {"here": site.state}, stall).miss_silent(30.0))
    assert WORKER not in site.state.core.broker.state.workers


def test_results_that_a_worker_brings_along_count(site: FakeSite) -> None:
    """It calls again after the restart, with a result that nobody has acknowledged."""
    site.state.core.broker.lost(WORKER, AttemptOutcome.LOST, time.time(), time.time())
    result = Result(AttemptKey(1, 0, 1), Ending.EXITED, started=time.time() - 5, wall=5.0, exit_code=0)
    say(
        site,
        Hello(
            pilot=1,
            node="n1",
            pid=1,
            version="t",
            processors=1,
            memory=1 << 30,
            deadline=time.time() + 600,
            unacknowledged=[result],
        ),
    )
    (found,) = site.journal.connection.execute("SELECT state FROM task WHERE number = 0").fetchone()
    assert found == "done"
