"""From the start of a worker's process to its Hello at the daemon."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import zmq

from adaptor.protocol.access import Access, worker_access, write_access
from adaptor.protocol.messages import Hello, decode_from_worker
from bench.table import Row, timed

_REPETITIONS = 7
_TIMEOUT_MS = 30_000


def rows() -> Iterator[Row]:
    with (
        tempfile.TemporaryDirectory(prefix="adaptor-bench-") as name,
        zmq.Context() as context,
        context.socket(zmq.ROUTER) as router,
    ):
        router.linger = 0
        environment = _listen(router, Path(name))
        took = statistics.median(_one_start(router, environment) for _ in range(_REPETITIONS))
    yield timed(f"start of a worker to its Hello, median of {_REPETITIONS}", took, 0.150)


def _listen(router: zmq.Socket[bytes], folder: Path) -> dict[str, str]:
    """Be a daemon that only listens; the environment of its workers."""
    (server_public, server_secret), (public, secret) = zmq.curve_keypair(), zmq.curve_keypair()
    router.curve_server = True
    router.curve_secretkey = server_secret
    port = router.bind_to_random_port("tcp://127.0.0.1")
    access = Access(
        addresses=(f"tcp://127.0.0.1:{port}",),
        server_key=server_public.decode(),
        public_key=public.decode(),
        secret_key=secret.decode(),
    )
    write_access(folder / worker_access("bench"), access)
    return {
        **os.environ,
        "ADAPTOR_ACCESS": str(folder / worker_access("bench")),
        "ADAPTOR_PILOT": "1",
        "ADAPTOR_PILOT_END": str(time.time() + 600),
        "ADAPTOR_PROCESSORS": "2",
        "ADAPTOR_NODE": "bench",
        "ADAPTOR_DIRECTORY": str(folder),
    }


def _one_start(router: zmq.Socket[bytes], environment: dict[str, str]) -> float:
    begin = time.perf_counter()
    worker = subprocess.Popen([sys.executable, "-m", "adaptor.worker"], env=environment)
    try:
        if not router.poll(_TIMEOUT_MS):
            raise TimeoutError("the worker did not say Hello")
        took = time.perf_counter() - begin
        message = decode_from_worker(router.recv_multipart()[-1])
    finally:
        worker.kill()
        worker.wait()
    if not isinstance(message, Hello):
        raise TypeError(f"the worker's first word was not Hello: {message}")
    return took
