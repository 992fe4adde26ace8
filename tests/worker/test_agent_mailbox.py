"""The real worker at a mailbox: what lies there after it, what it passes over, and a mailbox that is gone."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.protocol.messages import Leaving, Orders, Welcome
from adaptor.protocol.spool.layout import SCHEME, inbox
from tests.worker.fake_daemon import Harness, key, task
from tests.worker.mail_daemon import MailDaemon


@pytest.fixture
def daemon(tmp_path: Path) -> MailDaemon:
    return MailDaemon(tmp_path)


@pytest.fixture
def harness(daemon: MailDaemon, tmp_path: Path) -> Iterator[Harness]:
    made = Harness(tmp_path, daemon)
    try:
        yield made
    finally:
        made.stop()


def boxes(daemon: MailDaemon) -> list[Path]:
    return list((daemon.room / "out").iterdir())


def log(harness: Harness) -> str:
    return (harness.pilot / "worker-n1.log").read_text()


def test_nothing_lies_there_after_a_worker_has_left(harness: Harness, daemon: MailDaemon) -> None:
    worker = harness.started()
    assert f"welcomed at {SCHEME}{daemon.room}" in log(harness)
    harness.lease(task(1, "true"))
    harness.result(key(1))
    (box,) = boxes(daemon)
    assert box.stat().st_mode & 0o777 == 0o700
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    daemon.serve(0)
    assert boxes(daemon) == []
    assert list(inbox(daemon.room).iterdir()) == []


def test_the_farewell_of_a_worker_that_could_not_wait_is_heard(harness: Harness, daemon: MailDaemon) -> None:
    worker = harness.started()
    harness.lease(task(1, "sleep 300"))
    harness.running(key(1))
    postman, daemon.postman = daemon.postman, None
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    daemon.postman = postman
    daemon.until(lambda: daemon.goodbyes)
    assert daemon.goodbyes[-1].why is Leaving.SIGNAL
    assert key(1) in daemon.results


def test_while_the_daemon_is_away_few_files_gather(harness: Harness, daemon: MailDaemon) -> None:
    daemon.welcome = Welcome(heartbeat=0.05, idle_timeout=60, grace_time=2, patience=60)
    harness.started()
    daemon.close()
    daemon.until(lambda: log(harness).count("seeking it anew"))
    daemon.until(lambda: len(list(inbox(daemon.room).iterdir())) == 1, seconds=10)
    assert len(boxes(daemon)) == 1


def test_a_daemon_that_is_soon_back_is_met_without_seeking(harness: Harness, daemon: MailDaemon) -> None:
    harness.started()
    daemon.close()
    daemon.open()
    daemon.reports.clear()
    daemon.hellos.clear()
    daemon.until(lambda: daemon.reports)
    daemon.send(Orders(say_hello=True))
    daemon.until(lambda: daemon.hellos)
    harness.lease(task(1, "true"))
    assert harness.result(key(1)).exit_code == 0
    assert len(boxes(daemon)) == 1
    assert "seeking" not in log(harness)


def test_leases_for_a_connection_that_was_given_up_are_not_taken(
    harness: Harness, daemon: MailDaemon
) -> None:
    """The daemon has given them to somebody else when it hears the new Hello, which does not name them."""
    daemon.welcome = Welcome(heartbeat=0.3, idle_timeout=60, grace_time=2, patience=60)
    harness.started()
    (first,) = boxes(daemon)
    daemon.close()
    daemon.until(lambda: log(harness).count("seeking it anew"))
    assert not first.exists()
    daemon.open()
    daemon.hellos.clear()
    daemon.until(lambda: daemon.hellos)
    assert daemon.hellos[0].holding == []


def test_torn_and_foreign_files_are_passed_over_with_a_line_in_the_log(
    harness: Harness, daemon: MailDaemon
) -> None:
    harness.started()
    (box,) = boxes(daemon)
    (box / "notes.txt").write_text("somebody's")
    (box / "89abcdef.00000001").write_bytes(b"torn")
    daemon.until(lambda: "torn" in log(harness))
    harness.lease(task(1, "true"))
    assert harness.result(key(1)).exit_code == 0
    assert log(harness).count("'notes.txt' is not the daemon's") == 1
    assert (box / "notes.txt").exists()


def test_a_mailbox_that_disappears_is_a_lost_daemon(harness: Harness, daemon: MailDaemon) -> None:
    daemon.welcome = Welcome(heartbeat=0.3, idle_timeout=60, grace_time=2, patience=0.5)
    worker = harness.started()
    harness.lease(task(1, "sleep 1"))
    harness.running(key(1))
    daemon.close()
    daemon.room.rename(daemon.room.with_name("elsewhere"))
    assert harness.exit_code(worker) == 0
    assert "No such file" in log(harness)
    assert "no answer from the daemon" in log(harness)
    assert list(harness.pilot.glob("unsent-n1-*.msgpack"))


def test_a_mailbox_that_is_not_there_is_told(harness: Harness, daemon: MailDaemon) -> None:
    daemon.write_access(["mailbox:///no/such/room", "carrier-pigeon://tower"])
    worker = harness.start(ADAPTOR_REACH_TIMEOUT=0.5)
    assert harness.exit_code(worker) == 75
    sentence = (harness.pilot / "unreachable-n1.txt").read_text()
    assert "mailbox:///no/such/room" in sentence
    assert "carrier-pigeon" in sentence


def test_a_box_that_was_swept_away_is_opened_again(harness: Harness, daemon: MailDaemon) -> None:
    daemon.welcome = Welcome(heartbeat=0.3, idle_timeout=60, grace_time=2, patience=60)
    harness.started()
    daemon.hellos.clear()
    daemon.pilots = []
    daemon.open()
    daemon.until(lambda: daemon.hellos)
    daemon.pilots = [7]
    daemon.until(lambda: daemon.reports[-1].free_processors == 2)
    harness.lease(task(1, "true"))
    assert harness.result(key(1)).exit_code == 0


def test_the_way_may_change_from_a_socket_to_a_mailbox(harness: Harness, daemon: MailDaemon) -> None:
    daemon.write_access(["tcp://127.0.0.1:9", f"{SCHEME}{daemon.room}"])
    harness.started()
    daemon.send(Orders())
    harness.lease(task(1, "true"))
    assert harness.result(key(1)).exit_code == 0
