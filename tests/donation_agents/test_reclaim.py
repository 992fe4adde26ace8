"""A node is free when `reclaim` returns, whatever runs on it and whatever became of its keeper."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from adaptor.processes.identity import start_ticks
from adaptor.reports import JobState
from tests.donation_agents.donated_nodes import IMPATIENT, DonatedNodes
from tests.living import PATIENCE, hold, is_alive, is_gone, oldest_child, until

_GREEDY = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
memory = bytearray(300 * 2**20)
memory[::4096] = b"x" * len(memory[::4096])
print("full", flush=True)
time.sleep(1000)
"""


def test_a_worker_that_heeds_sigterm_leaves_at_once(nodes: DonatedNodes) -> None:
    tag = nodes.lend("n1", "trap 'exit 0' TERM; sleep 1000 & wait")
    done = nodes.reclaim("n1", "--job", "17")
    assert f"n1: freed of {tag}" in done.stdout
    assert done.stderr == ""
    report = nodes.report(tag)
    assert report.state is JobState.PREEMPTED
    assert report.reason.startswith("reclaimed for local job 17 after ")
    assert report.yielded is not None
    assert report.end is not None


def test_tasks_that_ignore_signals_and_flee_are_gone(nodes: DonatedNodes) -> None:
    tag, pids = nodes.lend_stubborn()
    nodes.reclaim()
    assert not any(is_alive(pid) for pid in pids)
    assert nodes.report(tag).state is JobState.PREEMPTED


def test_a_record_of_another_host_is_not_closed(nodes: DonatedNodes) -> None:
    """Where hosts share the runtime folder, a keeper that cannot be seen may live on the other one."""
    tag = nodes.lend("n1")
    keeper, record = psutil.Process(nodes.keeper()), nodes.record()
    worker = nodes.worker()
    hold(keeper)
    worker.kill()
    assert is_gone(worker)
    record["keeper"]["host"] = "elsewhere"
    (nodes.own / "use@n1").write_text(json.dumps(record))
    done = nodes.reclaim("n1", "--job=2")
    assert "freed" not in done.stdout
    assert f"{tag} may not have left: its record was made on elsewhere" in done.stderr
    assert "runtime_directory must be on a disk of each node" in done.stderr
    assert nodes.report(tag).state.ended is None
    record["keeper"]["host"] = os.uname().nodename
    (nodes.own / "use@n1").write_text(json.dumps(record))
    assert f"freed of {tag}" in nodes.reclaim("n1", "--job=2").stdout


def test_a_task_that_has_filled_its_memory_is_gone(nodes: DonatedNodes) -> None:
    output = nodes.folder / "greedy"
    tag = nodes.lend("n1", f"exec {sys.executable} -c '{_GREEDY}' > {output}")
    until(lambda: "full" in output.read_text() if output.exists() else False, "the memory is full")
    worker = oldest_child(psutil.Process(nodes.keeper()))
    assert worker is not None
    nodes.reclaim()
    assert not is_alive(worker.pid)
    assert nodes.report(tag).state is JobState.PREEMPTED


def test_other_nodes_of_the_same_machine_go_on(nodes: DonatedNodes) -> None:
    nodes.lend("n1")
    other = nodes.lend("n2")
    nodes.reclaim("n1")
    assert nodes.report(other).state is JobState.RUNNING
    assert is_alive(nodes.keeper("n2"))


def test_a_stopped_keeper(nodes: DonatedNodes) -> None:
    tag, pids = nodes.lend_stubborn()
    keeper = nodes.keeper()
    hold(psutil.Process(keeper))
    nodes.reclaim()
    assert not any(is_alive(pid) for pid in [keeper, *pids])
    assert nodes.report(tag).state is JobState.PREEMPTED


def test_a_keeper_that_hangs_is_killed_with_its_processes(nodes: DonatedNodes) -> None:
    """One that does not heed its signal, as in a file system that does not answer."""
    tag = nodes.lend("n1")
    record = nodes.record()
    deaf = subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1000; done"])
    try:
        until(lambda: psutil.Process(deaf.pid).children(), "it does not hear any more")
        keeper = record["keeper"]
        record["keeper"] = {**keeper, "pid": deaf.pid, "ticks": start_ticks(deaf.pid)}
        (nodes.own / "use@n1").write_text(json.dumps(record))
        done = nodes.reclaim("n1", f"--timeout={IMPATIENT}")
        assert deaf.wait(PATIENCE) == -signal.SIGKILL
    finally:
        deaf.kill()
    assert "its processes were killed" in done.stderr
    assert is_gone(keeper["pid"])
    assert nodes.report(tag).end is not None


@pytest.mark.parametrize(
    "damage", ["{", "[]", "{}", '{"tag": "x", "keeper": 1, "notes": "", "since": 0}', None]
)
def test_a_record_that_is_damaged_or_gone(nodes: DonatedNodes, damage: str | None) -> None:
    tag = nodes.lend("n1")
    keeper, record = nodes.keeper(), nodes.own / "use@n1"
    worker = nodes.worker()
    if damage is None:
        record.unlink()
    else:
        record.write_text(damage)
    nodes.reclaim()
    assert not is_alive(worker.pid)
    until(lambda: not is_alive(keeper), "the keeper has left")
    assert nodes.report(tag).state is JobState.PREEMPTED
    nodes.lend("n1")


def test_a_killed_keeper_leaves_nothing_behind(nodes: DonatedNodes) -> None:
    tag, pids = nodes.lend_stubborn()
    os.kill(nodes.keeper(), signal.SIGKILL)
    until(lambda: not is_alive(nodes.keeper()), "the keeper is dead")
    # What has shed its environment and lost all its ancestors cannot be known for ours any more.
    marked = [pid for pid in pids if "ADAPTOR_SUPERVISED" in psutil.Process(pid).environ()]
    done = nodes.reclaim("n1", "--job=3", f"--timeout={IMPATIENT}")
    assert marked
    assert not any(is_alive(pid) for pid in marked)
    assert "did not end it" in done.stderr
    until(lambda: nodes.report(tag).end is not None, "its end was written down")
    assert nodes.report(tag).state is JobState.PREEMPTED
    for pid in pids:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_two_reclaims_at_once(nodes: DonatedNodes) -> None:
    tag, pids = nodes.lend_stubborn()
    both = [
        subprocess.Popen(nodes.reclaim_words("n1", f"--job={job}"), stdout=subprocess.PIPE, text=True)
        for job in (1, 2)
    ]
    assert [each.wait(PATIENCE) for each in both] == [0, 0]
    for each in both:
        each.communicate()
    assert not any(is_alive(pid) for pid in pids)
    assert nodes.report(tag).state is JobState.PREEMPTED


def test_only_the_use_that_is_cancelled_ends(nodes: DonatedNodes) -> None:
    tag = nodes.lend("n1")
    assert "not in use" in nodes.reclaim("n1", "--cancel=somebody.else").stdout
    assert nodes.report(tag).state is JobState.RUNNING
    nodes.reclaim("n1", f"--cancel={tag}")
    assert nodes.report(tag).state is JobState.CANCELLED


@pytest.mark.parametrize("node", ["n9", "no/such", "..", "", "-n", "a b", "n1@17"])
def test_a_node_that_nobody_knows(nodes: DonatedNodes, node: str) -> None:
    tag = nodes.lend("n1")
    done = nodes.reclaim(node, "--job=17")
    assert "not in use" in done.stdout or "is not a name" in done.stderr
    assert nodes.report(tag).state is JobState.RUNNING


@pytest.mark.parametrize("options", [["--job=a/b"], ["--timeout=x"], ["--nonsense"]])
def test_what_it_does_not_understand_is_no_reason_to_fail(nodes: DonatedNodes, options: list[str]) -> None:
    assert nodes.reclaim("n1", *options).stderr != ""


def test_a_runtime_folder_that_is_none(nodes: DonatedNodes) -> None:
    nodes.runtime.write_text("no folder")
    assert "Not a directory" in nodes.reclaim("n1", "--job=1").stderr
