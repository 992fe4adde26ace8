"""From the start of a worker's process to its Hello at the daemon."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from adaptor.protocol.access import Access, worker_access, write_access
from adaptor.protocol.channel import LARGEST_FROM_WORKER, Party
from adaptor.protocol.keys import new_identity
from adaptor.protocol.messages import Hello, decode_from_worker
from bench.table import Row, timed

_REPETITIONS = 7
_TIMEOUT = 30.0


def rows() -> Iterator[Row]:
    server, worker = new_identity("server"), new_identity("worker")
    party = Party(server, worker.certificate, server=True)
    with (
        tempfile.TemporaryDirectory(prefix="adaptor-bench-") as name,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        listening.settimeout(_TIMEOUT)
        path = Path(name) / worker_access("bench")
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        write_access(path, Access(addresses=(address,), server=server.certificate, own=worker))
        took = statistics.median(_one_start(listening, party, path) for _ in range(_REPETITIONS))
    yield timed(f"start of a worker to its Hello, median of {_REPETITIONS}", took, 0.150)


def _one_start(listening: socket.socket, party: Party, access: Path) -> float:
    environment = {
        **os.environ,
        "ADAPTOR_ACCESS": str(access),
        "ADAPTOR_PILOT": "1",
        "ADAPTOR_PILOT_END": str(time.time() + 600),
        "ADAPTOR_PROCESSORS": "2",
        "ADAPTOR_NODE": "bench",
        "ADAPTOR_DIRECTORY": str(access.parent),
    }
    begin = time.perf_counter()
    worker = subprocess.Popen([sys.executable, "-m", "adaptor.worker"], env=environment)
    try:
        # Behind the worker's name.
        connection, _ = listening.accept()
        messages: list[bytes] = []
        with connection:
            connection.settimeout(_TIMEOUT)
            channel = party.channel(LARGEST_FROM_WORKER)
            while len(messages) < 2:
                messages += channel.receive(connection.recv(65536))
                connection.sendall(channel.outgoing())
        data = messages[1]
        took = time.perf_counter() - begin
    finally:
        worker.kill()
        worker.wait()
    message = decode_from_worker(data)
    if not isinstance(message, Hello):
        raise TypeError(f"the worker's first word was not Hello: {message}")
    return took
