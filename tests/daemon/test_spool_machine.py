"""Any order of writing, reading, delayed listings, crashes and restarts: all is in order, and only what a
listing shows too late is lost.

The worker's transport and the daemon's endpoint are the real ones, on real files; only their clock is
the test's. A daemon may be killed at any moment, also between having heard a file and removing it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from adaptor.daemon import spool as endpoint_module
from adaptor.daemon.spool import SpoolEndpoint
from adaptor.protocol.access import Access, Credentials
from adaptor.protocol.maildir import Seal, address_of, from_workers
from adaptor.protocol.spool import Spool
from adaptor.worker import spool_transport
from adaptor.worker.spool_transport import SpoolConnector
from adaptor.worker.transport import Transport
from tests.examples import examples

WORKER = "7-n1-42"


class Clock:
    """In place of the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


class Killed(BaseException):
    """The daemon ends here and now."""


class SpoolMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self._patches = [
            mock.patch.object(spool_transport, "time", self.clock),
            mock.patch.object(endpoint_module, "time", self.clock),
        ]
        for patch in self._patches:
            patch.start()
        self.folder = Path(tempfile.mkdtemp())
        self.spool = self.folder / "spools" / "spool"
        self._wakeup, self._signal = os.pipe()
        self.remarks: list[str] = []
        self.connector = SpoolConnector(WORKER, self._wakeup, self.remarks.append)
        self.said: list[bytes] = []
        """By the worker, on its present connection."""
        self.heard: list[bytes] = []
        """By the daemon, of that connection, in all its lives."""
        self.heard_in_run: list[bytes] = []
        """By the daemon's present run."""
        self.posted: list[bytes] = []
        """For that connection, by the daemon's present run."""
        self.received: list[bytes] = []
        self.count = 0
        self.kept: dict[Path, bytes] = {}
        """Files as they lay there."""
        self.killed_when_hearing = False
        self.lagging = False
        self.late: set[bytes] = set()
        """Words in files that a listing has shown after a later one."""
        self.endpoint = self._make_endpoint()
        self.transport = self._connect()

    def teardown(self) -> None:
        self.transport.close(0)
        for patch in self._patches:
            patch.stop()
        os.close(self._wakeup)
        os.close(self._signal)
        shutil.rmtree(self.folder)

    def _make_endpoint(self) -> SpoolEndpoint:
        async def hear(batch: list[tuple[bytes, bytes]]) -> None:
            words = [word for _, word in batch if word in self.said]
            self.heard += words
            self.heard_in_run += words
            if self.killed_when_hearing:
                raise Killed

        spool = Spool(self.spool)
        spool.locate()
        return SpoolEndpoint(
            spool,
            Seal("key"),
            hear=hear,
            pilots=lambda: [7],
            complain=lambda problem: None,
        )

    def _connect(self) -> Transport:
        access = Access(addresses=(), server="", own=Credentials("", "key"))
        return self.connector.connect(access, address_of(self.spool))

    def _word(self) -> bytes:
        self.count += 1
        return b"%d" % self.count

    @rule(words=st.integers(1, 12), seconds=st.sampled_from([0.0, 0.2]))
    def the_worker_says_something(self, words: int, seconds: float) -> None:
        """In one file, or in several."""
        for _ in range(words):
            self.clock.now += seconds
            word = self._word()
            assert self.transport.send(word)
            self.said.append(word)
        self.kept = {path: path.read_bytes() for path in from_workers(self.spool).iterdir()}

    @rule()
    def the_daemon_says_something(self) -> None:
        word = self._word()
        sent = self.endpoint.send(WORKER.encode(), word)
        if sent and self.heard_in_run:  # else it goes to an earlier connection
            self.posted.append(word)

    @rule(seconds=st.floats(0.01, 3.0))
    def time_passes_and_the_worker_looks(self, seconds: float) -> None:
        self.clock.now += seconds
        self.received += self.transport.receive(0)

    @rule()
    def the_daemon_looks(self) -> None:
        self.lagging = False
        asyncio.run(self.endpoint.exchange())

    @rule()
    def letters_appear_again(self) -> None:
        """A file server that was restarted may repeat a rename."""
        for path, data in self.kept.items():
            path.write_bytes(data)

    @precondition(lambda self: not self.lagging)
    @rule(hidden=st.integers(0, 1))
    def the_daemon_looks_and_the_listing_lags(self, hidden: int) -> None:
        """It lacks one of the files that are there; the next one shows all."""
        self.lagging = True
        self.the_worker_says_something(2, 0.2)
        lacking = Spool._worker_files

        def worker_files(spool: Spool, found: list[bytes]) -> list[bytes]:
            paths = lacking(spool, found)
            if hidden < len(paths) - 1:
                path = Path(os.fsdecode(paths[hidden]))
                self.late.update(Seal("key").open(f"in/{path.name}", path.read_bytes()).messages)
            return paths[:hidden] + paths[hidden + 1 :]

        with mock.patch.object(Spool, "_worker_files", worker_files):
            asyncio.run(self.endpoint.exchange())

    @rule()
    def the_daemon_is_restarted(self) -> None:
        self.endpoint = self._make_endpoint()
        self.heard_in_run, self.posted, self.received = [], [], []
        self._drop_answers()

    @rule()
    def the_daemon_is_killed_when_it_has_heard_and_not_removed(self) -> None:
        self.killed_when_hearing = True
        with contextlib.suppress(Killed):
            asyncio.run(self.endpoint.exchange())
        self.killed_when_hearing = False
        self.the_daemon_is_restarted()

    @rule()
    def the_worker_connects_anew(self) -> None:
        self.transport.close(0)
        self.transport = self._connect()
        self.said, self.heard, self.heard_in_run, self.posted, self.received = [], [], [], [], []
        self.kept = {}

    def _drop_answers(self) -> None:
        """What the run before has written is read now, so that what follows is of this one."""
        self._settle_worker()
        self.received = []

    def _settle_worker(self) -> None:
        for _ in range(12):
            self.clock.now += 1.0
            self.received += self.transport.receive(0)

    @invariant()
    def what_the_worker_has_received_is_what_was_posted_in_order(self) -> None:
        assert self.received == self.posted[: len(self.received)]

    @invariant()
    def the_daemon_has_heard_in_order_but_for_what_came_again_after_a_crash(self) -> None:
        reached = 0
        for word in self.heard:
            position = self.said.index(word)
            assert self.late.issuperset(self.said[reached:position]), "one was left out"
            reached = max(reached, position + 1)

    @invariant()
    def no_life_of_the_daemon_hears_anything_twice(self) -> None:
        assert len(self.heard_in_run) == len(set(self.heard_in_run))

    @invariant()
    def few_files_lie_there(self) -> None:
        assert len([path for path in self.spool.rglob("*") if path.is_file()]) <= 2 * 8 + 2
        assert not self.remarks

    @rule()
    def in_the_end_everything_arrives(self) -> None:
        for _ in range(40):
            self._settle_worker()
            asyncio.run(self.endpoint.exchange())
            if set(self.said) <= {*self.heard, *self.late} and self.received == self.posted:
                break
        assert set(self.said) <= {*self.heard, *self.late}
        assert self.received == self.posted


SpoolMachine.TestCase.settings = examples(60, stateful_step_count=30, suppress_health_check=list(HealthCheck))
TestSpoolMachine = SpoolMachine.TestCase
