"""`python -m bench.swarm ACCESS SECONDS TASK SLOTS PILOT...`: workers of many pilots in one process.

Each is a connection of its own and speaks the real protocol, but its tasks are waited for, not run. Prints
one JSON line: how many results were acknowledged in SECONDS, and how many workers were welcomed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from pathlib import Path

from adaptor.protocol.access import Access, read_access
from adaptor.protocol.messages import (
    AttemptKey,
    Ending,
    FromWorker,
    Hello,
    Orders,
    Report,
    Result,
    Welcome,
    decode_to_worker,
    encode,
)
from adaptor.worker.tls_transport import TlsConnector

_TICK = 0.25
"""Seconds between two looks of a worker at its tasks."""
_SAY_AGAIN = 3.0
_HEARTBEAT = 5.0
_CONNECT_AGAIN = 2.0


class SwarmWorker:
    """Times are epoch seconds."""

    def __init__(self, access: Access, pilot: int, slots: int, task: float) -> None:
        self._pilot, self._slots, self._task = pilot, slots, task
        self._access = access
        self._connector = TlsConnector(f"{pilot}-swarm-{os.getpid()}", os.eventfd(0))
        self._connect(0.0)
        self.acknowledged = 0
        self._queue: deque[AttemptKey] = deque()
        self._running: dict[AttemptKey, float] = {}
        self._unacknowledged: dict[AttemptKey, Result] = {}
        self._sent: dict[AttemptKey, float] = {}

    def _connect(self, now: float) -> None:
        self._transport = self._connector.connect(self._access, self._access.addresses[0])
        self._tried = now
        self.welcomed, self._spoke = False, 0.0

    def hear(self, now: float) -> None:
        if self._transport.broken and now - self._tried >= _CONNECT_AGAIN:
            self._transport.close(0.0)
            self._connect(now)
        for data in self._transport.receive(0.0):
            message = decode_to_worker(data)
            if isinstance(message, Welcome):
                self.welcomed = True
            elif isinstance(message, Orders):
                for key in message.acknowledged:
                    self.acknowledged += self._unacknowledged.pop(key, None) is not None
                    self._sent.pop(key, None)
                self._queue.extend(lease.key for lease in message.leases)
                for key in (*message.abort, *message.give_back):
                    if key in self._queue:
                        self._queue.remove(key)
                        self._unacknowledged[key] = Result(key, Ending.RETURNED)
                if message.say_hello:
                    self.welcomed = False
                    self._spoke = 0.0

    def act(self, now: float) -> None:
        if not self.welcomed:
            if now - self._spoke >= _SAY_AGAIN:
                self._say(self._hello(now), now)
            return
        for key, end in list(self._running.items()):
            if end <= now:
                del self._running[key]
                self._unacknowledged[key] = Result(
                    key, Ending.EXITED, started=end - self._task, wall=self._task, cpu=self._task, exit_code=0
                )
        started = []
        while self._queue and len(self._running) < self._slots:
            key = self._queue.popleft()
            self._running[key] = now + self._task
            started.append(key)
        due = [key for key in self._unacknowledged if now - self._sent.get(key, 0.0) >= _SAY_AGAIN]
        if started or due or now - self._spoke >= _HEARTBEAT:
            self._sent.update(dict.fromkeys(due, now))
            report = Report(
                results=[self._unacknowledged[key] for key in due],
                started=started,
                free_processors=self._slots - len(self._running) - len(self._queue),
                free_memory=2**33,
                queued=len(self._queue),
            )
            self._say(report, now)

    def _hello(self, now: float) -> Hello:
        return Hello(
            pilot=self._pilot,
            node=f"n{self._pilot}",
            pid=os.getpid(),
            version="bench",
            processors=self._slots,
            memory=2**33,
            deadline=now + 3600,
            holding=[*self._queue, *self._running],
            started=list(self._running),
            unacknowledged=list(self._unacknowledged.values()),
        )

    def _say(self, message: FromWorker, now: float) -> None:
        self._spoke = now if self._transport.send(encode(message)) else 0.0


def main() -> None:
    path, seconds, task, slots, *pilots = sys.argv[1:]
    access = read_access(Path(path))
    workers = [SwarmWorker(access, int(pilot), int(slots), float(task)) for pilot in pilots]
    until = time.time() + float(seconds)
    while (now := time.time()) < until:
        for worker in workers:
            worker.hear(now)
            worker.act(now)
        time.sleep(max(0.0, _TICK - (time.time() - now)))
    said = {
        "results": sum(worker.acknowledged for worker in workers),
        "welcomed": sum(worker.welcomed for worker in workers),
    }
    print(json.dumps(said))
    sys.stdout.flush()
    os._exit(0)  # without goodbyes: the daemon is ended next


if __name__ == "__main__":
    main()
