"""What replay measures is what runs: the daemon's own step at the local site makes the same requests."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.config.schema import SiteConfig
from adaptor.crafting.situation import SiteRules
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.sites import terms_of
from adaptor.daemon.step import step
from adaptor.journal.journal import Journal
from adaptor.model import Limits, Request
from adaptor.processes.trees import end_trees
from adaptor.resources import TaskSize
from adaptor.scheduling.bag import Bag
from adaptor.units import Duration
from adaptor_simulation.cluster import cluster_of_processors
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.grid_run import run_grid_job
from backends.base import PilotOrder
from backends.local.backend import LocalBackend
from tests.journal.bags import add_bag
from tests.simulation.trace_strategies import jobs_from

PROCESSORS, RUNTIME = 4, 100
LIMITS = Limits(max_pending_requests=3, max_proc=PROCESSORS, max_tr=300)
OTHERS = [(2, 750), (4, 400)]
"""The first runs, the second waits for it: two processors are free for 750 s. Nothing here hangs on a
few seconds, as the clock of the local site goes on."""


class NoServer:
    worker_port = 4711

    async def send_worker(self, identity: bytes, data: bytes) -> None:
        """Nobody is there."""


@pytest.fixture
def here(tmp_path):
    """A local site with a queue of others, and a daemon's state around it."""
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeper.chmod(0o700)
    config = SiteConfig(
        backend="local", processors=PROCESSORS, initial_tr=Duration(RUNTIME), pad=Duration(0),
        grace_time=Duration(0.3), python=str(sleeper),
    )  # fmt: skip
    state = tmp_path / "state"
    (state / "pilots").mkdir(parents=True, mode=0o700)
    backend = LocalBackend(config, state / "site")
    for number, (p, tr) in enumerate(OTHERS):
        folder = state / f"other-{number}"
        folder.mkdir()
        backend.submit(order(folder, p, tr))
    journal = Journal(state)
    core = Core(state, journal, NoServer(), {"here": terms_of(config, LIMITS)})
    yield Site("here", config, backend, LIMITS, core)
    journal.close()
    for note in (state / "site").glob("*.job.json*"):
        end_trees(f"{state / 'site'}/{note.name.split('.')[0]}")


def order(folder: Path, p: int, tr: int) -> PilotOrder:
    return PilotOrder(
        tag=folder.name, request=Request(p, tr), task=TaskSize(),
        directory=folder, worker=("/bin/sleep", "600"), environment={"ADAPTOR_DIRECTORY": str(folder)},
    )  # fmt: skip


def asked_by_the_daemon(here: Site, tasks: int, heuristic: str) -> list[Request]:
    here.memory.settings = msgspec.structs.replace(here.memory.settings, heuristic=heuristic)
    spec = BagSpec(name="b", cwd="/", output="/nowhere", environment={})
    bag = Bag(add_bag(here.core.journal, spec, [TaskInput("true")] * tasks, time.time()), spec, tasks)
    bag.fill()
    here.core.broker.add_bag(bag, time.time())
    asyncio.run(step(here))
    return [pilot.request for pilot in here.pilots.values()]


def asked_in_replay(tasks: int, heuristic: str) -> list[Request]:
    cluster = cluster_of_processors(
        jobs_from([(0, p, tr, tr) for p, tr in OTHERS]), PROCESSORS, "conservative"
    )
    cluster.advance(0)
    terms = GridTerms(
        rules=SiteRules(limits=LIMITS), heuristic=heuristic, workers=INSTANT_WORKERS, initial_tr=RUNTIME
    )
    result = run_grid_job(cluster, np.full(tasks, RUNTIME), terms)
    return [Request(each.p, each.tr) for each in result.requests if each.submitted == 0]


@pytest.mark.parametrize("heuristic", ["static", "adaptive"])
@pytest.mark.parametrize("tasks", [1, 5, 9, 40])
def test_the_daemon_asks_for_what_replay_asks_for(here, tasks, heuristic):
    asked = asked_by_the_daemon(here, tasks, heuristic)
    assert asked == asked_in_replay(tasks, heuristic)
    assert asked


def test_the_hole_in_the_queue_is_taken(here):
    assert asked_by_the_daemon(here, 5, "adaptive")[0] == Request(2, 300)
