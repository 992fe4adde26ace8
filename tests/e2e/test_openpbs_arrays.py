"""Pilot arrays on a real OpenPBS: one submission for all pilots of a decision, whatever becomes of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.e2e.many_pilots import PILOTS, dying_at, narrow, run_ten_thousand_tasks
from tests.living import until

pytestmark = [pytest.mark.pbs, pytest.mark.nightly]


def elements(openpbs: ThrowawayOpenPbs) -> dict[str, str]:
    """The states of all jobs of arrays in the queue, by their ids."""
    printed = openpbs.run(["qstat", "-t"], check=False)
    rows = (line.split() for line in printed.splitlines() if re.match(r"\d+\[\d+\]", line))
    return {row[0]: row[-2] for row in rows if row[-2] != "X"}


def arrays(openpbs: ThrowawayOpenPbs) -> set[str]:
    """The numbers of all arrays that PBS knows, ended ones too."""
    return {id.partition("[")[0] for id in openpbs.run(["qselect", "-x"]).split() if "[]" in id}


def job_of(openpbs: ThrowawayOpenPbs, id: str) -> str:
    return openpbs.run(["qstat", "-x", "-f", id], check=False)


def state_of(lab: Lab, pilot: int) -> str:
    return next(str(each["state"]) for each in lab.pilots() if each["id"] == pilot)


def in_state(lab: Lab, state: str) -> list[dict[str, Any]]:
    return [pilot for pilot in lab.pilots() if pilot["state"] == state]


def test_a_thousand_tasks_in_forty_pilots_survive_what_befalls_daemon_and_pilots(
    openpbs: ThrowawayOpenPbs, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, before = 1000, arrays(openpbs)
    monkeypatch.setenv("PATH", dying_at("qsub", '*" -J "*', tmp_path / "dying"))
    lab.configure(narrow("pbs"))
    lab.run("daemon", "start")
    (tmp_path / "dying" / "pid").write_text(str(lab.daemon_pid()))
    daemon = psutil.Process(lab.daemon_pid())
    lab.bag(["sleep 0.2; echo $ADAPTOR_TASK_ID"] * tasks)
    lab.submit("tasks.bag")
    daemon.wait(60)
    assert len(elements(openpbs)) == PILOTS
    assert len(arrays(openpbs) - before) == 1
    lab.run("daemon", "start")
    until(lambda: lab.status()["done"] > 20, "tasks are done in the pilots of the array")
    assert len(arrays(openpbs) - before) == 1, "what PBS had taken is not submitted again"
    running, waiting = in_state(lab, "running"), in_state(lab, "queued")
    assert len(running) == 16
    assert len(waiting) == PILOTS - 16
    openpbs.run(["qdel", running[0]["job"], waiting[-1]["job"]])
    until(lambda: state_of(lab, running[0]["id"]) == "cancelled", "the end of one that ran is seen")
    until(lambda: state_of(lab, waiting[-1]["id"]) in ("cancelled", "withdrawn"), "and of one that waited")
    lab.wait()
    exactly_one_result_each(lab, 1, tasks)
    until(lambda: not elements(openpbs), "no pilot is left in the queue")


def test_a_pilot_that_is_deleted_in_the_queue_while_no_daemon_runs_is_lost_soon(
    openpbs: ThrowawayOpenPbs, lab: Lab
) -> None:
    """It holds no place in the queue for ten minutes."""
    lab.begin(narrow("pbs"), ["true"] * 5 + [lab.hold()] * 60)
    until(lambda: len(in_state(lab, "running")) == 16, "all processors are taken")
    waits = until(lambda: in_state(lab, "queued"), "more pilots wait")[-1]
    lab.kill_daemon()
    openpbs.run(["qdel", waits["job"]])
    lab.run("daemon", "start")
    until(lambda: state_of(lab, waits["id"]) in ("vanished", "cancelled", "withdrawn"), "its end is seen")
    lab.release()
    lab.wait()
    exactly_one_result_each(lab, 1, 65)


@pytest.mark.timeout(1500)
def test_ten_thousand_tasks_in_five_hundred_pilots_run_once_each(openpbs: ThrowawayOpenPbs, lab: Lab) -> None:
    """The executions and the jobs are counted from outside."""
    before = arrays(openpbs)

    def without_pbs() -> None:
        openpbs.stop_server()
        until(lambda: lab.ask("status", "--sites")[0]["problem"], "the daemon says that PBS does not answer")
        lab.restart_daemon()
        openpbs.start_server()

    run_ten_thousand_tasks(lab, "pbs", 0.3, lambda: len(elements(openpbs)), without_pbs)
    asked = {pilot["job"].partition("[")[0] for pilot in lab.pilots() if pilot["job"]}
    assert arrays(openpbs) - before == asked, "PBS has no job that the journal has not"


def test_a_bag_of_unknown_runtimes_ends_in_many_pilots_of_few_submissions(
    openpbs: ThrowawayOpenPbs, lab: Lab
) -> None:
    tasks, before = 300, arrays(openpbs)
    most = {"max_pilots": 24, "max_proc": 4, "max_tr": "10m"}
    lab.configure(site("pbs", heuristic="elastic", limits=most, idle_timeout=5))
    lab.bag(["sleep 1; echo $ADAPTOR_TASK_ID"] * tasks)
    lab.submit("tasks.bag")
    until(lambda: lab.status()["done"] > 20, "the bag is under way")
    assert arrays(openpbs) - before
    first = min(lab.pilots(), key=lambda pilot: int(pilot["id"]))
    assert "[" in first["job"], "PBS takes arrays for free slots, too"
    assert len(in_state(lab, "running")) + len(in_state(lab, "queued")) <= most["max_pilots"]
    lab.restart_daemon()
    lab.wait()
    exactly_one_result_each(lab, 1, tasks)
    for pilot in lab.pilots():
        if pilot["started"]:
            said = job_of(openpbs, pilot["job"])
            assert f"Resource_List.ncpus = {pilot['p']}" in said
            vnodes = re.findall(r"exec_vnode = (.*)", said.replace("\n\t", ""))[0]
            held = sum(map(int, re.findall(r":ncpus=(\d+)", vnodes)))
            assert pilot["held"] == held == pilot["p"], "what its exec_vnode holds is what it is charged for"
    until(lambda: not elements(openpbs), "no pilot is left in the queue")


@pytest.mark.parametrize(
    ("of", "name", "value", "most"),
    [
        ("server", "max_array_size", "10", PILOTS),
        ("queue workq", "max_queued", "[u:PBS_GENERIC=20]", 20),
    ],
)
def test_where_pbs_takes_a_part_of_an_array_that_part_does_the_work(
    of: str, name: str, value: str, most: int, openpbs: ThrowawayOpenPbs, lab: Lab
) -> None:
    tasks = 100
    lab.configure(narrow("pbs"))
    lab.bag([f"{lab.hold()}; echo $ADAPTOR_TASK_ID"] * tasks)
    with openpbs.setting(name, value, of):
        lab.submit("tasks.bag")
        until(lambda: len(in_state(lab, "running")) == 16, "pilots run")
        until(lambda: len(in_state(lab, "queued")) == most - 16, "as many pilots wait as PBS allows")
        there = openpbs.run(["qstat", "-t"]).splitlines()
        assert len([line for line in there if "[]" not in line and re.search(r" [RQ] workq", line)]) == most
        lab.release()
        lab.wait()
    exactly_one_result_each(lab, 1, tasks)
