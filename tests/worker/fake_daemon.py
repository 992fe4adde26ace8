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
import zmq

from adaptor.protocol.access import Access, write_access
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

DEADLINE = 30.0
WELCOME = Welcome(heartbeat=10.0, idle_timeout=60.0, grace_time=2.0, patience=60.0)
"""A worker that has no answer for three heartbeats connects again and repeats its results; a busy machine may
keep a test from answering for seconds."""


class FakeDaemon:
    """A ROUTER with CURVE. `acknowledging`: whether results are acknowledged as they come."""

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
        self._server = zmq.curve_keypair()
        self._worker = zmq.curve_keypair()
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._peer: bytes | None = None
        self.port = 0
        self.open()

    def open(self, port: int = 0) -> None:
        """Listen (again), and say so in the access file."""
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._socket.linger = 0
        self._socket.curve_server = True
        self._socket.curve_secretkey = self._server[1]
        self._socket.bind(f"tcp://127.0.0.1:{port or '*'}")
        endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self.port = int(endpoint.rpartition(":")[2])
        self.write_access([endpoint])

    def write_access(self, addresses: Iterable[str]) -> None:
        public, secret = (key.decode() for key in self._worker)
        server = self._server[0].decode()
        write_access(
            self.access,
            Access(
                addresses=tuple(addresses),
                server_key=server,
                public_key=public,
                secret_key=secret,
            ),
        )

    def close(self) -> None:
        """Fall silent and leave the port."""
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None

    def end(self) -> None:
        self.close()
        self._context.term()

    @property
    def listening(self) -> bool:
        return self._socket is not None

    def send(self, message: ToWorker) -> None:
        assert self._socket is not None
        assert self._peer is not None, "no worker has said anything"
        self._socket.send_multipart([self._peer, encode(message)])

    def send_raw(self, data: bytes) -> None:
        assert self._socket is not None
        assert self._peer is not None
        self._socket.send_multipart([self._peer, data])

    def until(self, condition: Callable[[], Any], seconds: float = DEADLINE) -> None:
        """Serve until the condition holds; fails when it does not in time."""
        limit = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < limit, "it did not happen in time"
            self.serve(0.02)

    def serve(self, seconds: float) -> None:
        """Take one message if there is one in time, and answer it."""
        if self._socket is None:
            time.sleep(seconds)
        elif self._socket.poll(int(seconds * 1000)):
            self._peer, data = self._socket.recv_multipart()
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
        """Of a worker; `variables` go over those of a usual backend (None: not set)."""
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
        """What a worker on n1 that was started has said."""
        return (self.pilot / "worker-n1.log").read_text()

    def is_alone(self) -> bool:
        """Whether the worker has noticed that its daemon is silent, and has found none since."""
        log = self.log()
        return log.count("the daemon is silent") == log.count("welcomed at")

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
        limit = time.monotonic() + 20
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
