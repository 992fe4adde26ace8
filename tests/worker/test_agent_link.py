"""The real worker and its daemon: seeking it, silence, another port, repetition, orders."""

from __future__ import annotations

from adaptor.protocol.messages import Ending, Lease, Orders, Welcome
from adaptor.resources import TaskSize
from tests.worker.fake_daemon import Harness, key, task, wait_for

QUICK = Welcome(heartbeat=0.2, idle_timeout=60, grace_time=2, patience=60)


def test_addresses_are_tried_in_turn(harness: Harness) -> None:
    here = f"tcp://127.0.0.1:{harness.daemon.port}"
    harness.daemon.write_access(["tcp://no-such-host.invalid:1", "tcp://127.0.0.1:1", here])
    harness.started()
    assert f"welcomed at {here}" in harness.log()


def test_a_daemon_that_cannot_be_reached(harness: Harness) -> None:
    harness.daemon.close()
    worker = harness.start(ADAPTOR_REACH_TIMEOUT=0.5)
    assert harness.exit_code(worker) == 75
    path = harness.pilot / "unreachable-n1.txt"
    assert path.stat().st_mode & 0o777 == 0o600
    sentence = path.read_text()
    assert "has not reached the daemon for 0.5 s" in sentence
    assert f"tcp://127.0.0.1:{harness.daemon.port}" in sentence
    assert "a firewall" in sentence


def test_an_address_is_tried_however_late_a_worker_comes_to_it(harness: Harness) -> None:
    harness.daemon.close()
    worker = harness.start(ADAPTOR_REACH_TIMEOUT=0)
    assert harness.exit_code(worker) == 75
    sentence = (harness.pilot / "unreachable-n1.txt").read_text()
    assert f"tcp://127.0.0.1:{harness.daemon.port}" in sentence


def test_an_access_file_that_is_missing(harness: Harness) -> None:
    harness.daemon.access.unlink()
    worker = harness.start(ADAPTOR_REACH_TIMEOUT=0.5)
    assert harness.exit_code(worker) == 75
    assert "access-worker.json: cannot be read" in (harness.pilot / "unreachable-n1.txt").read_text()


def test_an_access_file_with_damaged_keys(harness: Harness) -> None:
    text = harness.daemon.access.read_text()
    harness.daemon.access.write_text(text.replace("BEGIN", "BEGUN"))
    worker = harness.start(ADAPTOR_REACH_TIMEOUT=0.5)
    assert harness.exit_code(worker) == 75
    assert "certificate or its key is damaged" in (harness.pilot / "unreachable-n1.txt").read_text()


def test_a_daemon_that_does_not_know_it_is_told_what_it_holds(harness: Harness) -> None:
    harness.started()
    harness.daemon.acknowledging = False
    harness.lease(*(task(n, "sleep 300") for n in range(1, 5)), task(0, "true"))
    harness.running(key(1), key(2))
    harness.daemon.hellos.clear()
    harness.daemon.send(Orders(say_hello=True))
    harness.daemon.until(lambda: harness.daemon.hellos)
    hello = harness.daemon.hellos[0]
    assert hello.holding == [key(3), key(4), key(0), key(1), key(2)]
    assert hello.started == [key(1), key(2)]
    assert hello.unacknowledged == []


def test_results_are_sent_again_until_they_are_acknowledged(harness: Harness) -> None:
    harness.daemon.welcome = QUICK
    harness.started()
    harness.daemon.acknowledging = False
    harness.lease(task(1, "exit 3"))
    daemon = harness.daemon
    daemon.until(lambda: len(daemon.received) >= 3)
    assert len({result.started for result in daemon.received}) == 1
    daemon.send(Orders(say_hello=True))
    daemon.hellos.clear()
    daemon.until(lambda: daemon.hellos)
    assert [result.key for result in daemon.hellos[0].unacknowledged] == [key(1)]
    daemon.acknowledging = True
    daemon.hellos.clear()
    daemon.send(Orders(acknowledged=[key(1)], say_hello=True))
    daemon.until(lambda: daemon.hellos and not daemon.hellos[-1].unacknowledged)
    times, reports = len(daemon.received), len(daemon.reports)
    daemon.until(lambda: len(daemon.reports) > reports + 5)
    assert len(daemon.received) == times


def test_heartbeats_tell_what_runs(harness: Harness) -> None:
    harness.daemon.welcome = QUICK
    harness.started()
    harness.lease(task(1, "sleep 300"))
    daemon = harness.daemon
    daemon.until(lambda: [load for report in daemon.reports for load in report.load])
    (running, seconds), *_ = next(report.load for report in daemon.reports if report.load)
    assert running == key(1)
    assert seconds >= 0


def test_abort_ends_the_tree_and_returns_what_was_not_started(harness: Harness) -> None:
    harness.started(ADAPTOR_PROCESSORS=1)
    harness.lease(task(1, "trap '' TERM; sleep 300; sleep 300"), task(2, "true"), task(3, "echo later"))
    harness.running(key(1))
    harness.daemon.send(Orders(abort=[key(1), key(2), key(99)]))
    assert harness.result(key(2)).ending is Ending.RETURNED
    assert harness.result(key(1)).ending is Ending.ABORTED
    assert harness.result(key(3)).exit_code == 0


def test_give_back_spares_what_runs(harness: Harness) -> None:
    harness.started(ADAPTOR_PROCESSORS=1)
    go = harness.folder / "go"
    harness.lease(task(1, wait_for(go)), task(2, "true"))
    harness.running(key(1))
    harness.daemon.send(Orders(give_back=[key(1), key(2), key(99)]))
    assert harness.result(key(2)).ending is Ending.RETURNED
    go.touch()
    assert harness.result(key(1)).exit_code == 0


def test_a_slot_is_as_many_processors_as_the_bag_says(harness: Harness) -> None:
    harness.started(ADAPTOR_PROCESSORS=4, ADAPTOR_MEMORY=1000)
    bags = [
        harness.bag(1, task=TaskSize(processors=2, memory=100)),
        harness.bag(2, task=TaskSize(memory=600)),
    ]
    wide = [task(n, "sleep 300") for n in range(2)]
    small = [Lease(key(n, bag=2), "sleep 300", 0.0) for n in range(2)]
    harness.lease(wide[0], *small, wide[1], bags=bags)
    daemon = harness.daemon
    harness.running(key(0), key(0, bag=2))
    daemon.until(lambda: daemon.reports[-1].queued == 2)
    assert set(daemon.started) == {key(0), key(0, bag=2)}
    assert daemon.reports[-1].free_processors == 0


def test_what_never_fits_and_what_is_unknown_goes_back(harness: Harness) -> None:
    harness.started(ADAPTOR_MEMORY=1000)
    bags = [harness.bag(1, task=TaskSize(processors=3)), harness.bag(2, task=TaskSize(memory=1001))]
    harness.lease(
        task(1, "true"), Lease(key(1, bag=2), "true", 0), Lease(key(1, bag=3), "true", 0), bags=bags
    )
    for bag in (1, 2, 3):
        assert harness.result(key(1, bag=bag)).ending is Ending.RETURNED


def test_a_lease_that_comes_twice_runs_once(harness: Harness) -> None:
    harness.started()
    harness.lease(task(1, "echo once"), task(1, "echo twice"), task(2, "sleep 0.2"))
    harness.lease(task(1, "echo twice"), task(2, "sleep 0.2"))
    harness.result(key(2))
    harness.result(key(1))
    assert len(harness.daemon.started) == len(set(harness.daemon.started))


def test_many_results_come_in_few_reports(harness: Harness) -> None:
    harness.started()
    count = 300
    harness.lease(*(task(n, ["/bin/true"]) for n in range(count)))
    harness.daemon.until(lambda: len(harness.daemon.results) == count)
    assert len(harness.daemon.received) == count
