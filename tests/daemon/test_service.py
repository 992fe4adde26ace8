"""The service around one broker and one journal: how it goes on after failures of the journal."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import threading
from pathlib import Path

import pytest

from adaptor.daemon.ground.kept_files import KeptFiles
from adaptor.daemon.jobs.record import DaemonJobs, write_jobs
from adaptor.daemon.service import Service
from adaptor.errors import JournalError
from adaptor.journal.damage import DamagedJournalError


class Recovering:
    """Counts how often the daemon begins again from the journal."""

    now = staticmethod(lambda: 0.0)

    def __init__(self) -> None:
        self.journal = self
        self.recovered = 0

    def explain(self, *_about: object) -> None:
        """It can be written."""

    def put_back(self) -> bool:
        return False

    def recover(self) -> None:
        self.recovered += 1


@pytest.mark.parametrize(
    ("error", "again"), [(JournalError("the disk is full"), 1), (DamagedJournalError("a page is bad"), 0)]
)
def test_only_what_time_can_mend_is_tried_again(
    error: JournalError, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service.__new__(Service)
    monkeypatch.setattr(Service, "_load_pilots", lambda _service: None)
    core = Recovering()
    service.core, service.sites = core, {}  # type: ignore[assignment]
    service.stalled, service._damaged = "", False
    service._stall(error)
    for _ in range(2):
        asyncio.run(service._try_journal())
    assert core.recovered == again
    assert service.stalled == ("" if again else str(error))


def watching(looks: list[str | Exception], monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service that looks after its folder: what it finds, one after the other."""

    def displaced() -> str:
        found = looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    service = Service.__new__(Service)
    service.directory, service._displaced, service._kept_files = Path("/st"), displaced, KeptFiles()
    service._stop = asyncio.Event()
    monkeypatch.setattr(Service, "stop", lambda service, **_how: service._stop.set())
    monkeypatch.setattr("adaptor.daemon.service._LOOK", 0.0)
    return service


def test_it_ends_when_its_folder_is_gone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks: list[str | Exception] = ["", "", "its lock was removed"]
    asyncio.run(watching(looks, monkeypatch)._watch_folder())
    assert not looks
    assert (
        "stopping: the state directory /st is not this daemon's any more: its lock was removed" in caplog.text
    )


def test_it_ends_when_a_job_continues_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks: list[str | Exception] = ["", ""]
    service = watching(looks, monkeypatch)
    service.directory = tmp_path
    jobs = DaemonJobs(series="ab", site="hpc", walltime=60, memory=1, current=2, current_job="12", host="n3")
    write_jobs(tmp_path, jobs)
    asyncio.run(service._watch_folder())
    assert "stopping: the daemon continues in job 12 on n3" in caplog.text


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.EACCES, errno.EMFILE])
def test_a_look_that_fails_for_a_moment_ends_nothing(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    problem = OSError(number, os.strerror(number), "/st/daemon.lock")
    looks: list[str | Exception] = ["", problem, problem, "", "gone"]
    with caplog.at_level(logging.INFO):
        asyncio.run(watching(looks, monkeypatch)._watch_folder())
    assert not looks
    assert caplog.text.count(os.strerror(number)) == 1, "the same trouble is told once"
    assert "can be looked at again" in caplog.text


def test_work_that_fails_is_done_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As when the system gives no thread."""
    ends: list[Exception | None] = [RuntimeError("can't start new thread"), JournalError("full"), None]

    async def work() -> None:
        if (end := ends.pop(0)) is not None:
            raise end

    service = Service.__new__(Service)
    service.stalled, service._damaged = "", False
    monkeypatch.setattr("adaptor.daemon.service._LOOK", 0.0)
    asyncio.run(service._go_on("forgetting", work))
    assert not ends
    assert "forgetting failed; it is tried again" in caplog.text
    assert "can't start new thread" in caplog.text
    assert service.stalled == "full"


def test_it_waits_for_its_first_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = 2

    def start(thread: threading.Thread) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise RuntimeError("can't start new thread")
        real(thread)

    real = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr("adaptor.daemon.service._NO_THREAD_PAUSE", 0.0)
    asyncio.run(Service.__new__(Service)._threads(2)).shutdown()
    assert caplog.text.count("ulimit -u") == 2
