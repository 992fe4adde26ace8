"""A small daemon for driving the real worker process: it records what comes and answers as it is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from adaptor.protocol.access import Access, write_access
from adaptor.protocol.channel import Party
from adaptor.protocol.keys import new_identity
from adaptor.protocol.messages import (
    AttemptKey,
    BagContext,
    FromWorker,
    Goodbye,
    Hello,
    Lease,
    Orders,
    Report,
    Result,
    ToWorker,
    Welcome,
    decode_from_worker,
    encode,
)
from tests.living import PATIENCE
from tests.protocol.peers import FrameServer

WELCOME = Welcome(heartbeat=10.0, idle_timeout=60.0, grace_time=2.0, patience=60.0)
"""A worker that has no answer for three heartbeats connects again and repeats its results; a busy machine may
keep a test from answering for seconds."""


class FakeDaemon:
    """`acknowledging`: whether results are acknowledged as they come."""

    def __init__(self, folder: Path, *, welcome: Welcome = WELCOME) -> None:
        self.folder = folder
        self.access = folder / "access-worker.json"
        self.welcome = welcome
        self.acknowledging = True
        self.answering = True
        self.hellos: list[Hello] = []
        self.reports: list[Report] = []
        self.goodbyes: list[Goodbye] = []
        self.results: dict[AttemptKey, Result] = {}
        self.received: list[Result] = []
        """Every result as often as it came."""
        self.started: list[AttemptKey] = []
        self._server, self.identity = new_identity("server"), new_identity("worker")
        self._party = Party(self._server, self.identity.certificate, server=True)
        self._frames: FrameServer | None = None
        self._peer: bytes | None = None
        self.port = 0
        self.open()

    def open(self, port: int = 0) -> None:
        """Listen (again), and say so in the access file."""
        self._frames = FrameServer(self._party, named=True, port=port)
        self.port = self._frames.port
        self.write_access([f"tcp://127.0.0.1:{self.port}"])

    def write_access(self, addresses: Iterable[str]) -> None:
        access = Access(addresses=tuple(addresses), server=self._server.certificate, own=self.identity)
        write_access(self.access, access)

    def close(self) -> None:
        """Fall silent and leave the port."""
        if self._frames is not None:
            self._frames.close()
            self._frames = None

    def end(self) -> None:
        self.close()

    @property
    def listening(self) -> bool:
        return self._frames is not None

    def send(self, message: ToWorker) -> None:
        self.send_raw(encode(message))

    def send_raw(self, data: bytes) -> None:
        assert self._frames is not None
        assert self._peer is not None, "no worker has said anything"
        self._frames.send(self._peer, data)

    def until(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
        """Serve until the condition holds; fails when it does not in time."""
        limit = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < limit, "it did not happen in time"
            self.serve(0.02)

    def serve(self, seconds: float) -> None:
        """Take one message if there is one in time, and answer it."""
        if self._frames is None:
            time.sleep(seconds)
        elif self._frames.poll(seconds):
            self._peer, data = self._frames.receive()
            self._take(decode_from_worker(data))

    def _take(self, message: FromWorker) -> None:
        if isinstance(message, Hello):
            self.hellos.append(message)
            self.started += [key for key in message.started if key not in self.started]
            self._record(message.unacknowledged)
        else:
            (self.reports if isinstance(message, Report) else self.goodbyes).append(message)  # type: ignore[arg-type]
            self._record(message.results)
        if isinstance(message, Report):
            self.started += message.started
        if self.answering:
            self._answer(message)

    def _answer(self, message: FromWorker) -> None:
        results = message.unacknowledged if isinstance(message, Hello) else message.results
        keys = [result.key for result in results] if self.acknowledging else []
        if isinstance(message, Hello):
            self.send(msgspec.structs.replace(self.welcome, acknowledged=keys))
        else:
            self.send(Orders(acknowledged=keys))

    def _record(self, results: list[Result]) -> None:
        self.received += results
        self.results.update({result.key: result for result in results})


class Harness:
    """A fake daemon, and real workers that belong to it."""

    def __init__(self, folder: Path, daemon: FakeDaemon | None = None) -> None:
        self.folder = folder
        self.output = folder / "out"
        self.cwd = folder / "cwd"
        self.pilot = folder / "pilot"
        for each in (self.cwd, self.pilot):
            each.mkdir()
        self.daemon = daemon or FakeDaemon(folder)
        self.workers: list[subprocess.Popen[bytes]] = []

    def environment(self, **variables: object) -> dict[str, str]:
        """Environment of a worker; `variables` go over those of a usual backend (None: not set)."""
        values: dict[str, object] = {
            **os.environ,
            "ADAPTOR_ACCESS": self.daemon.access,
            "ADAPTOR_PILOT": 7,
            "ADAPTOR_PILOT_END": time.time() + 3600,
            "ADAPTOR_PROCESSORS": 2,
            "ADAPTOR_NODE": "n1",
            "ADAPTOR_DIRECTORY": self.pilot,
            **variables,
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    def start(self, **variables: object) -> subprocess.Popen[bytes]:
        """Start a worker in such an environment."""
        worker = subprocess.Popen([sys.executable, "-m", "adaptor.worker"], env=self.environment(**variables))
        self.workers.append(worker)
        return worker

    def started(self, **variables: object) -> subprocess.Popen[bytes]:
        """Start a worker and wait for its first report."""
        worker = self.start(**variables)
        self.daemon.until(lambda: self.daemon.reports)
        return worker

    def bag(self, bag: int = 1, **change: Any) -> BagContext:
        values = {
            "cwd": str(self.cwd),
            "output": str(self.output),
            "environment": {"PATH": os.environ["PATH"]},
            **change,
        }
        return BagContext(bag, **values)

    def lease(self, *leases: Lease, bags: Iterable[BagContext] | None = None, **more: Any) -> None:
        self.daemon.send(
            Orders(bags=list(bags) if bags is not None else [self.bag()], leases=list(leases), **more)
        )

    def result(self, key: AttemptKey) -> Result:
        """Wait for it."""
        self.daemon.until(lambda: key in self.daemon.results)
        return self.daemon.results[key]

    def running(self, *keys: AttemptKey) -> None:
        """Wait until these have been reported as started."""
        self.daemon.until(lambda: set(keys) <= set(self.daemon.started))

    def exit_code(self, worker: subprocess.Popen[bytes]) -> int:
        """Wait for the worker's end while the daemon serves."""
        self.daemon.until(lambda: worker.poll() is not None)
        assert worker.returncode is not None
        if worker.returncode == 0 and self.daemon.listening:
            self.daemon.until(lambda: self.daemon.goodbyes)  # it may still be on its way
        return worker.returncode

    def log(self) -> str:
        """Log of a started worker on n1."""
        return (self.pilot / "worker-n1.log").read_text()

    def is_alone(self) -> bool:
        """Whether the worker has noticed that its daemon is gone, and has found none since."""
        return self._losses() == self.log().count("welcomed at")

    def has_been_alone(self) -> bool:
        """Whether the worker has ever noticed that its daemon is gone."""
        return self._losses() > 0

    def _losses(self) -> int:
        log = self.log()
        return log.count("the daemon is silent") + log.count("the connection to the daemon is lost")

    def give_terms(self, **change: float) -> None:
        """Welcome the worker once more, with other terms, and wait until they hold for it."""
        self.daemon.welcome = msgspec.structs.replace(self.daemon.welcome, **change)
        before = self.log().count("welcomed at")
        self.daemon.send(self.daemon.welcome)
        self.daemon.until(lambda: self.log().count("welcomed at") > before)

    def stop(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        limit = time.monotonic() + PATIENCE
        while any(worker.poll() is None for worker in self.workers) and time.monotonic() < limit:
            self.daemon.serve(0.02)
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
        self.daemon.end()


def key(task: int, attempt: int = 1, bag: int = 1) -> AttemptKey:
    return AttemptKey(bag, task, attempt)


def wait_for(path: Path) -> str:
    """A command that ends when there is such a file."""
    return f"while [ ! -e {path} ]; do sleep 0.05; done"


def task(number: int, command: str | list[str], needs: float = 0.0, **more: Any) -> Lease:
    """A lease of the first attempt at a task of bag 1."""
    return Lease(key(number), command, needs, **more)
