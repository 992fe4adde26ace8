"""Faults of the adaptor's own processes and of its tasks."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

import psutil

from lab.campaign.faults.catalog import NoVictimError, choose, claim, fault, present
from lab.campaign.world import World, variable


@fault("daemon: kill -9", weight=3, lasts=(0, 10))
def daemon_killed(world: World, draw: float) -> Iterator[str]:
    with claim(world, "daemon"):
        daemon = present(world.daemon())
        daemon.kill()
        world.forget_daemon()
        daemon.wait(60)
        yield f"pid {daemon.pid}"
        world.daemon_runs = True


@fault("daemon: frozen", weight=2, lasts=(2, 14))
def daemon_frozen(world: World, draw: float) -> Iterator[str]:
    with claim(world, "daemon"):
        daemon = present(world.daemon())
        with frozen(daemon):
            yield f"pid {daemon.pid}"


@fault("worker: kill -9", weight=3)
def worker_killed(world: World, draw: float) -> Iterator[str]:
    worker = choose(world.workers(), draw)
    worker.kill()
    yield f"pid {worker.pid}"


@fault("worker: frozen", weight=2, lasts=(2, 18))
def worker_frozen(world: World, draw: float) -> Iterator[str]:
    worker = choose(world.workers(), draw)
    with claim(world, f"worker {worker.pid}"), frozen(worker):
        yield f"pid {worker.pid}"


@fault("task: kill -9", weight=2)
def task_killed(world: World, draw: float) -> Iterator[str]:
    process = choose(world.tasks(), draw)
    words = [variable(process, name) for name in ("ADAPTOR_TASK_ID", "ADAPTOR_ATTEMPT")]
    if not all(words):  # it has just ended
        raise NoVictimError
    execution = int(words[0]), int(words[1])
    world.killed.add(execution)
    process.kill()
    yield f"task {execution[0]}, attempt {execution[1]}"


@fault("keeper: kill -9", scenes=("donation-agents",))
def keeper_killed(world: World, draw: float) -> Iterator[str]:
    keeper = choose(world.keepers(), draw)
    keeper.kill()
    yield f"pid {keeper.pid}"


@fault("keeper: frozen", scenes=("donation-agents",), lasts=(2, 12))
def keeper_frozen(world: World, draw: float) -> Iterator[str]:
    keeper = choose(world.keepers(), draw)
    with claim(world, f"keeper {keeper.pid}"), frozen(keeper):
        yield f"pid {keeper.pid}"


@contextlib.contextmanager
def frozen(process: psutil.Process) -> Iterator[None]:
    """SIGSTOP, and SIGCONT unless somebody has ended it meanwhile."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGCONT)
