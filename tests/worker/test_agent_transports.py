"""The real worker works the same over either transport: a socket, or a spool."""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec
import pytest

from adaptor.protocol.messages import Ending, Leaving, Orders, Welcome, encode
from tests.worker.fake_daemon import FakeDaemon, Harness, key, task, wait_for
from tests.worker.spool_daemon import SpoolDaemon

QUICK = Welcome(heartbeat=0.5, idle_timeout=60, grace_time=2, patience=60)


@pytest.fixture(params=[FakeDaemon, SpoolDaemon], ids=["socket", "spool"])
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> FakeDaemon:
    return request.param(tmp_path)  # type: ignore[no-any-return]


def test_tasks_run_and_their_results_are_acknowledged(harness: Harness) -> None:
    worker = harness.started()
    harness.lease(*(task(n, "exit 3" if n == 7 else "true") for n in range(50)))
    harness.daemon.until(lambda: len(harness.daemon.results) == 50)
    assert [n for n in range(50) if harness.result(key(n)).exit_code != 0] == [7]
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    harness.daemon.until(lambda: harness.daemon.goodbyes)
    assert harness.daemon.goodbyes[-1].why is Leaving.SIGNAL
    assert not list(harness.pilot.glob("unsent-*"))


def test_orders_come_in_the_order_in_which_they_were_given(harness: Harness) -> None:
    harness.started(ADAPTOR_PROCESSORS=1)
    order = harness.folder / "order"
    for n in range(30):
        harness.lease(task(n, f"echo {n} >> {order}"))
        if n % 10 == 0:
            harness.daemon.serve(0.05)
    harness.daemon.until(lambda: len(harness.daemon.results) == 30)
    assert order.read_text().split() == [str(n) for n in range(30)]


@pytest.mark.parametrize("same_port", [True, False])
def test_tasks_go_on_while_the_daemon_is_away_and_it_hears_of_them(harness: Harness, same_port: bool) -> None:
    harness.daemon.welcome = QUICK
    harness.started()
    go = harness.folder / "go"
    harness.lease(
        task(1, wait_for(go)),
        task(2, wait_for(go)),
        task(3, "true"),
        task(4, "sleep 300"),
        task(5, "sleep 300"),
    )
    harness.running(key(1), key(2))
    harness.daemon.close()
    go.touch()
    harness.daemon.until(harness.is_alone)
    harness.daemon.hellos.clear()
    harness.daemon.open(harness.daemon.port if same_port else 0)
    harness.daemon.until(lambda: harness.daemon.hellos)
    for n in (1, 2, 3):
        assert harness.result(key(n)).exit_code == 0
    hello = harness.daemon.hellos[-1]
    told = [*hello.holding, *(result.key for result in hello.unacknowledged)]
    assert sorted(each.task for each in told) == [1, 2, 3, 4, 5]
    assert set(hello.started) <= set(hello.holding)


def test_a_worker_that_is_left_alone_leaves(harness: Harness) -> None:
    worker = harness.started()
    go = harness.folder / "go"
    harness.lease(task(1, wait_for(go)))
    harness.running(key(1))
    harness.give_terms(heartbeat=0.3, patience=0.5)
    harness.daemon.close()
    harness.daemon.until(harness.has_been_alone)
    go.touch()
    assert harness.exit_code(worker) == 0
    assert list(harness.pilot.glob("unsent-n1-*.msgpack"))
    assert "no answer from the daemon" in harness.log()


def test_a_worker_is_told_to_leave(harness: Harness) -> None:
    worker = harness.started()
    harness.lease(task(1, "sleep 300"))
    harness.running(key(1))
    harness.daemon.send(Orders(leave="all tasks have ended"))
    assert harness.exit_code(worker) == 0
    assert harness.daemon.results[key(1)].ending is Ending.ENDED
    harness.daemon.until(lambda: harness.daemon.goodbyes)
    assert harness.daemon.goodbyes[-1].why is Leaving.TOLD


@pytest.mark.parametrize("nonsense", [b"\xc1nonsense", encode(Orders())[:-3]])
def test_a_worker_that_does_not_understand_its_daemon_leaves(harness: Harness, nonsense: bytes) -> None:
    """The daemon has another version: it counts on leases that this worker never got."""
    worker = harness.started()
    harness.lease(task(1, "sleep 300"))
    harness.running(key(1))
    harness.daemon.send_raw(nonsense)
    assert harness.exit_code(worker) == 0
    assert harness.daemon.results[key(1)].ending is Ending.ENDED
    assert "cannot decode message" in harness.log()


def test_it_does_not_say_hello_again_while_its_hello_is_on_the_way(harness: Harness) -> None:
    """Else the second Hello would not name the leases that the first one has brought."""
    daemon = harness.daemon
    daemon.welcome = msgspec.structs.replace(QUICK, heartbeat=3.0)
    harness.started()
    daemon.answering = False
    daemon.hellos.clear()
    for _ in range(3):
        daemon.send(Orders(say_hello=True))
    daemon.until(lambda: daemon.hellos)
    harness.lease(task(1, "true"))
    assert harness.result(key(1)).exit_code == 0
    assert len(daemon.hellos) == 1
    daemon.hellos.clear()

    def asked_again() -> bool:
        daemon.send(Orders(say_hello=True))
        return bool(daemon.hellos)

    daemon.until(asked_again)
