from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.processes.devices import Devices
from adaptor.protocol.messages import BagContext
from adaptor.worker.environment import NodeEnvironment
from adaptor.worker.jobs.as_job import TaskJobs
from adaptor.worker.parts import NodeFiles
from adaptor.worker.runner import Runner
from adaptor.worker.scripts import Scripts
from adaptor.worker.slots import Slots
from adaptor.worker.staged.node_bundles import NodeBundles
from adaptor.worker.tasks import WorkerTasks
from adaptor.worker.timers import Timers
from tests.worker.fake_daemon import FakeDaemon, Harness


@pytest.fixture
def daemon(tmp_path: Path) -> FakeDaemon:
    return FakeDaemon(tmp_path)


@pytest.fixture
def harness(daemon: FakeDaemon, tmp_path: Path) -> Iterator[Harness]:
    made = Harness(tmp_path, daemon)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BagContext:
    monkeypatch.chdir(tmp_path)  # what is started changes the current folder
    return BagContext(1, str(tmp_path), str(tmp_path / "out"), {"PATH": "/usr/bin:/bin"})


@pytest.fixture
def tasks(bag: BagContext, tmp_path: Path) -> WorkerTasks:
    files = NodeFiles(Path(bag.output))
    timers = Timers()
    made = WorkerTasks(
        Slots(2, 1000, time.monotonic() + 10_000),
        Runner(
            NodeEnvironment({}, None),
            Devices({}),
            files,
            Scripts(tmp_path, "n1", {}),
            TaskJobs(tmp_path, "n1", {}, tmp_path),
            NodeBundles(tmp_path, tmp_path, {}, "n1", 1000, lambda _line: None),
            2,
            timers,
            lambda: 0,
        ),
        files,
        timers,
    )
    made.know(bag)
    return made
