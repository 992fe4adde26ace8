"""The real worker at a spool: what lies there after it, what it passes over, and a spool that is gone."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from adaptor.protocol.maildir import SCHEME, from_workers
from adaptor.protocol.messages import Leaving, Orders, Welcome
from tests.worker.fake_daemon import Harness, key, task, wait_for
from tests.worker.spool_daemon import SpoolDaemon


@pytest.fixture
def daemon(tmp_path: Path) -> SpoolDaemon:
    return SpoolDaemon(tmp_path)


def folders(daemon: SpoolDaemon) -> list[Path]:
    return list((daemon.spool / "out").iterdir())


def test_nothing_lies_there_after_a_worker_has_left(harness: Harness, daemon: SpoolDaemon) -> None:
    worker = harness.started()
    assert f"welcomed at {SCHEME}{daemon.spool}" in harness.log()
    harness.lease(task(1, "true"))
    harness.result(key(1))
    (folder,) = folders(daemon)
    assert folder.stat().st_mode & 0o777 == 0o700
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    daemon.serve(0)
    assert folders(daemon) == []
    assert list(from_workers(daemon.spool).iterdir()) == []


def test_the_farewell_of_a_worker_that_could_not_wait_is_heard(harness: Harness, daemon: SpoolDaemon) -> None:
    worker = harness.started()
    harness.lease(task(1, "sleep 300"))
    harness.running(key(1))
    endpoint, daemon.endpoint = daemon.endpoint, None
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    daemon.endpoint = endpoint
    daemon.until(lambda: daemon.goodbyes)
    assert daemon.goodbyes[-1].why is Leaving.SIGNAL
    assert key(1) in daemon.results


def test_while_the_daemon_is_away_few_files_gather(harness: Harness, daemon: SpoolDaemon) -> None:
    daemon.welcome = Welcome(heartbeat=0.05, idle_timeout=60, grace_time=2, patience=60)
    harness.started()
    daemon.close()
    daemon.until(lambda: harness.log().count("reconnecting"))
    daemon.until(lambda: len(list(from_workers(daemon.spool).iterdir())) == len(folders(daemon)) == 1)


def test_a_daemon_that_is_soon_back_is_met_without_seeking(harness: Harness, daemon: SpoolDaemon) -> None:
    daemon.welcome = Welcome(heartbeat=2, idle_timeout=60, grace_time=2, patience=60)
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
    assert len(folders(daemon)) == 1
    assert "seeking" not in harness.log()


def test_leases_for_a_connection_that_was_given_up_are_not_taken(
    harness: Harness, daemon: SpoolDaemon
) -> None:
    """The daemon has given them to somebody else when it hears the new Hello, which does not name them."""
    daemon.welcome = Welcome(heartbeat=0.3, idle_timeout=60, grace_time=2, patience=60)
    harness.started()
    (first,) = folders(daemon)
    daemon.close()
    daemon.until(lambda: harness.log().count("reconnecting"))
    daemon.until(lambda: not first.exists())
    daemon.open()
    daemon.hellos.clear()
    daemon.until(lambda: daemon.hellos)
    assert daemon.hellos[0].holding == []


def test_torn_and_foreign_files_are_passed_over_with_a_line_in_the_log(
    harness: Harness, daemon: SpoolDaemon
) -> None:
    harness.started()
    (folder,) = folders(daemon)
    (folder / "notes.txt").write_text("somebody's")
    (folder / "89abcdef.00000001").write_bytes(b"torn")
    daemon.until(lambda: "torn" in harness.log())
    harness.lease(task(1, "true"))
    assert harness.result(key(1)).exit_code == 0
    assert harness.log().count("'notes.txt' is not ours") == 1
    assert (folder / "notes.txt").exists()


def test_a_spool_that_disappears_is_a_lost_daemon(harness: Harness, daemon: SpoolDaemon) -> None:
    worker = harness.started()
    go = harness.folder / "go"
    harness.lease(task(1, wait_for(go)))
    harness.running(key(1))
    harness.give_terms(heartbeat=0.3, patience=0.5)
    daemon.close()
    daemon.spool.rename(daemon.spool.with_name("elsewhere"))
    daemon.until(harness.has_been_alone)
    go.touch()
    assert harness.exit_code(worker) == 0
    assert "No such file" in harness.log()
    assert "no answer from the daemon" in harness.log()
    assert list(harness.pilot.glob("unsent-n1-*.msgpack"))


def test_a_spool_that_is_not_there_is_told(harness: Harness, daemon: SpoolDaemon) -> None:
    daemon.write_access(["spool:///no/such/spool", "unknown://tower"])
    worker = harness.start(ADAPTOR_REACH_TIMEOUT=3)
    assert harness.exit_code(worker) == 75
    sentence = (harness.pilot / "unreachable-n1.txt").read_text()
    assert "spool:///no/such/spool" in sentence
    assert "unknown" in sentence


def test_a_connection_that_was_swept_away_is_opened_again(harness: Harness, daemon: SpoolDaemon) -> None:
    daemon.welcome = Welcome(heartbeat=0.3, idle_timeout=60, grace_time=2, patience=60)
    harness.started()
    daemon.hellos.clear()
    daemon.pilots = []
    daemon.open()
    daemon.until(lambda: daemon.hellos)
    daemon.pilots = [7]
    daemon.reports.clear()
    daemon.until(lambda: daemon.reports and daemon.reports[-1].free_processors == 2)
    harness.lease(task(1, "true"))
    assert harness.result(key(1)).exit_code == 0


def test_the_transport_may_change_from_a_socket_to_a_spool(harness: Harness, daemon: SpoolDaemon) -> None:
    daemon.write_access(["tcp://127.0.0.1:9", f"{SCHEME}{daemon.spool}"])
    harness.started()
    daemon.send(Orders())
    harness.lease(task(1, "true"))
    assert harness.result(key(1)).exit_code == 0
