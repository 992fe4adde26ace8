"""Idle nodes of a real OpenPBS in both modes of donation: local jobs get them as if we were not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.e2e.lab import Lab, exactly_one_result_each, until

pytestmark = [pytest.mark.pbs, pytest.mark.timeout(400)]

PREEMPTIBLE = """
sites:
  hpc:
    backend: pbs
    partition: workq
    limits: {max_pending_requests: 2, max_proc: 16, max_tr: 30m}
    initial_tr: 2m
    idle_timeout: 3
    poll_interval: 2
    donation: {mode: preemptible, partition: scavenger}
daemon:
  worker_timeout: 8
"""
AGENT = PREEMPTIBLE.replace(
    "{mode: preemptible, partition: scavenger}",
    "{{mode: agent, runtime_directory: {runtime}, reclaim_timeout: 5s}}",
)
HOOK = "adaptor_reclaim"


def donated(lab: Lab) -> list[str]:
    return [pilot["node"] for pilot in lab.pilots() if pilot["node"] and pilot["state"] == "running"]


def local_job(openpbs: ThrowawayOpenPbs, script: str) -> None:
    options = ["-q", "workq", "-l", "select=2:ncpus=4", "-l", "place=scatter:excl", "-l", "walltime=60"]
    openpbs.run(["qsub", *options, "-j", "oe", "-o", "/dev/null", "--", "/bin/sh", "-c", script])


@pytest.fixture
def preempting(openpbs: ThrowawayOpenPbs, request: pytest.FixtureRequest) -> Iterator[ThrowawayOpenPbs]:
    """By the `preempt_order` that is the parameter."""
    openpbs.qmgr(f"set sched default preempt_order = {request.param}")
    yield openpbs
    openpbs.qmgr("set sched default preempt_order = D")


@pytest.mark.parametrize("preempting", ["D", "R"], indirect=True)
def test_a_local_job_gets_donated_nodes_whether_pilots_are_deleted_or_put_back(
    preempting: ThrowawayOpenPbs, lab: Lab
) -> None:
    lab.configure(PREEMPTIBLE)
    lab.bag(["#ADAPTOR allocation=transparent replicas=0", *["sleep 6"] * 48])
    lab.submit("tasks.bag")
    until(lambda: len(donated(lab)) == 4, "all four nodes are donated", timeout=60)
    until(lambda: lab.status()["running"] == 16, "tasks run on all of them")
    local_job(preempting, f"cp $PBS_NODEFILE {lab.work}/nodes; sleep 4")
    until(lambda: (lab.work / "nodes").exists(), "the local job starts", timeout=60)
    lab.wait(timeout=200)
    exactly_one_result_each(lab, 1, 48)
    ends = {pilot["node"] for pilot in lab.pilots() if pilot["state"] == "preempted"}
    assert ends == set((lab.work / "nodes").read_text().split())
    lab.run("daemon", "stop")
    outcomes = [each["outcome"] for each in lab.attempts(1, list(range(48)))]
    assert outcomes.count("done") == 48
    until(lambda: not preempting.run(["qselect"]).split(), "nothing waits to run again", timeout=60)


@pytest.fixture
def hooked(openpbs: ThrowawayOpenPbs, lab: Lab) -> Iterator[ThrowawayOpenPbs]:
    """With the hook of the lab's site."""
    lab.configure(AGENT.format(runtime=lab.root / "donated"))
    hooks = lab.root / "hooks"
    lab.run("site", "install-hooks", "hpc", "--write", hooks)
    openpbs.qmgr(
        f"create hook {HOOK}",
        f"set hook {HOOK} event = 'execjob_begin,execjob_end'",
        f"set hook {HOOK} fail_action = none",
        f"set hook {HOOK} alarm = 20",
        f"import hook {HOOK} application/x-python default {hooks}/adaptor_reclaim.py",
    )
    yield openpbs
    lab.close()
    openpbs.qmgr(f"delete hook {HOOK}")


def ours(lab: Lab, node: str) -> list[int]:
    """The processes that carry the sign of the use of a node."""
    sign = f"ADAPTOR_SUPERVISED={lab.root}/donated/{os.getuid()}/{node}".encode()
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if sign in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


LOOK = r"""
for node in $(sort -u $PBS_NODEFILE); do
    echo $node >> {work}/taken
    grep -alz "^ADAPTOR_SUPERVISED={runtime}/.*/$node\$" /proc/[0-9]*/environ 2>/dev/null >> {work}/found
done
sleep 3
touch {work}/ended
"""


def test_a_local_job_finds_the_nodes_of_agents_free(hooked: ThrowawayOpenPbs, lab: Lab) -> None:
    stubborn = "trap '' TERM; sleep 8 & sleep 8; wait"
    lab.bag(["#ADAPTOR allocation=transparent", *[stubborn, "sleep 6"] * 20])
    lab.submit("tasks.bag")
    until(lambda: len(donated(lab)) == 4, "all four nodes are donated", timeout=60)
    until(lambda: lab.status()["running"] == 16, "tasks run on all of them")
    assert all(ours(lab, node) for node in hooked.nodes)
    local_job(hooked, LOOK.format(work=lab.work, runtime=lab.root / "donated"))
    until(lambda: (lab.work / "ended").exists(), "the local job has run", timeout=60)
    assert (lab.work / "found").read_text() == "", "processes of ours are on the nodes of a local job"
    assert len((lab.work / "taken").read_text().split()) == 2
    lab.wait(timeout=200)
    exactly_one_result_each(lab, 1, 40)
    assert lab.ask("report", "1")["donation"]["reclaims"] >= 2
