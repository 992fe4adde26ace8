"""A node has one use at a time, none while a local job has it, and not where others could interfere."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from adaptor.processes.trees import find
from adaptor.reports import JobState
from adaptor_donation_agents.records import marker
from backends.base import PilotOrder, SubmitRefused
from tests.donation_agents.donated_nodes import DonatedNodes
from tests.living import is_alive, is_gone, until

as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to give a folder to somebody else")


def refusal(nodes: DonatedNodes, node: str = "n1") -> str:
    with pytest.raises(SubmitRefused) as refused:
        nodes.agents.start(nodes.order(node, "exec sleep 1000"))
    return str(refused.value)


def test_a_node_has_one_use_at_a_time(nodes: DonatedNodes) -> None:
    tag = nodes.lend("n1")
    assert "n1 is in use already" in refusal(nodes)
    assert nodes.report(tag).state is JobState.RUNNING
    nodes.reclaim()
    nodes.lend("n1")


def test_no_use_starts_between_prolog_and_epilog(nodes: DonatedNodes) -> None:
    nodes.reclaim("n1", "--job=17")
    nodes.reclaim("n1", "--job=18")
    assert "taken by local job 17" in refusal(nodes)
    nodes.lend("n2")
    nodes.reclaim("n1", "--offer", "--job=17")
    assert "taken by local job 18" in refusal(nodes)
    nodes.reclaim("n1", "--offer", "--job=18")
    nodes.lend("n1")


def test_a_prolog_that_comes_while_a_use_starts(nodes: DonatedNodes) -> None:
    def start(order: PilotOrder) -> None:
        with contextlib.suppress(SubmitRefused):
            nodes.agents.start(order)

    sign = marker(str(nodes.runtime), os.getuid(), "n1")
    for number in range(10):
        starting = threading.Thread(target=start, args=(nodes.order("n1", "exec sleep 1000"),))
        starting.start()
        time.sleep(number / 100)  # so that it comes at one point of the start or another
        nodes.reclaim("n1", f"--job={number}")
        seen = find(sign)
        starting.join()
        assert seen == find(sign) == [], "the local job has the node for itself, then and later"
        nodes.reclaim("n1", "--offer")


def test_an_offer_without_a_job_removes_all_marks(nodes: DonatedNodes) -> None:
    nodes.reclaim("n1", "--job=17")
    nodes.reclaim("n1", "--job=18[4].server")
    nodes.reclaim("n1", "--offer")
    nodes.lend("n1")


def test_marks_of_an_earlier_boot_are_void(nodes: DonatedNodes) -> None:
    nodes.reclaim("n1", "--job=17")
    mark = nodes.own / "taken@n1@17"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "boot": "another"}))
    nodes.lend("n1")


def test_a_damaged_mark_counts(nodes: DonatedNodes) -> None:
    nodes.reclaim("n1", "--job=17")
    (nodes.own / "taken@n1@17").write_text("{")
    assert "taken by local job 17" in refusal(nodes)


def test_what_a_killed_keeper_left_is_cleared_away_by_the_next(nodes: DonatedNodes) -> None:
    tag = nodes.lend("n1", "trap '' TERM; while :; do sleep 1000; done")
    worker = nodes.worker()
    os.kill(nodes.keeper(), signal.SIGKILL)
    until(lambda: not is_alive(nodes.keeper()), "the keeper is dead")
    assert is_alive(worker.pid)
    nodes.lend("n1")
    until(lambda: not is_alive(worker.pid), "the old worker is dead")
    report = nodes.report(tag)
    assert (report.state, report.reason) == (JobState.NODE_FAILED, "its agent was killed")


def test_an_order_is_carried_out_once(nodes: DonatedNodes) -> None:
    go = nodes.folder / "go"
    order = nodes.order("n1", f"until test -e {go}; do sleep 0.01; done")
    nodes.agents.start(order)
    keeper = nodes.keeper()
    go.touch()
    until(lambda: nodes.report(order.tag).end is not None, "it ends")
    assert is_gone(keeper), "it has the node up to its own end"
    with pytest.raises(SubmitRefused, match="withdrawn before it began"):
        nodes.agents.start(order)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_runtime_folder_that_others_may_write_to(nodes: DonatedNodes, mode: int) -> None:
    nodes.runtime.mkdir()
    nodes.runtime.chmod(mode)
    assert "chmod go-w" in refusal(nodes)
    assert "chmod go-w" in nodes.reclaim("n1", "--job=1").stderr


def test_a_parent_that_others_may_write_to(nodes: DonatedNodes) -> None:
    nodes.folder.chmod(0o777)
    try:
        assert "other users may write to it" in refusal(nodes)
        nodes.folder.chmod(0o1777)  # as /var/tmp: nobody can put something in the place of ours
        nodes.lend("n1")
    finally:
        nodes.folder.chmod(0o700)


def test_a_link_in_the_place_of_the_runtime_folder(nodes: DonatedNodes, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    nodes.runtime.symlink_to(tmp_path / "elsewhere")
    assert "cannot be used" in refusal(nodes)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_in_the_place_of_ones_own_folder(nodes: DonatedNodes, tmp_path: Path) -> None:
    nodes.runtime.mkdir()
    (tmp_path / "elsewhere").mkdir()
    nodes.own.symlink_to(tmp_path / "elsewhere")
    assert "let root remove it" in refusal(nodes)
    nodes.reclaim("n1", "--job=17")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_in_the_place_of_a_record(nodes: DonatedNodes, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    nodes.own.mkdir(parents=True)
    (nodes.own / "use@n1").symlink_to(secret)
    nodes.lend("n1")
    assert secret.read_text() == "{}"


@as_root
def test_a_runtime_folder_of_somebody_else(nodes: DonatedNodes) -> None:
    nodes.runtime.mkdir()
    os.chown(nodes.runtime, 12345, 12345)
    assert "belongs to user 12345" in refusal(nodes)


def test_the_worker_steps_back_behind_everything_else(nodes: DonatedNodes) -> None:
    nodes.lend("n1")
    worker = nodes.worker()
    assert worker.nice() > psutil.Process(nodes.keeper()).nice()
    assert Path(f"/proc/{worker.pid}/oom_score_adj").read_text().strip() == "1000"


def test_what_the_worker_is_told(nodes: DonatedNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "99")
    seen = nodes.folder / "seen"
    tag = nodes.lend("n1", f"env > {seen}.new; mv {seen}.new {seen}", tr=100)
    until(seen.exists, "it has told")
    told = dict(line.split("=", 1) for line in seen.read_text().splitlines() if "=" in line)
    assert told["ADAPTOR_NODE"] == "n1"
    assert told["ADAPTOR_PROCESSORS"] == "2"
    assert told["ADAPTOR_PILOT"] == "1"
    assert "SLURM_JOB_ID" not in told, "a donated node is part of no job"
    start = nodes.report(tag).start
    assert start is not None
    assert float(told["ADAPTOR_PILOT_END"]) == pytest.approx(start + 100)
