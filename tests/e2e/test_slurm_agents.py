"""Workers on idle nodes outside Slurm's book-keeping, with its own prolog and epilog."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.clusters.slurm import ThrowawaySlurm, available
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.slurm


LOOK = r"""#!/bin/sh
for node in $(scontrol show hostnames); do
    echo $node >> {work}/nodes.{name}
    for file in $(grep -alz "^ADAPTOR_SUPERVISED={runtime}/.*/$node\$" /proc/[0-9]*/environ 2>/dev/null); do
        pid=$(basename $(dirname $file))
        echo "$node $pid $(tr '\0' ' ' < /proc/$pid/cmdline)" >> {work}/found.{name}
    done
done
touch {work}/found.{name}
sleep 3
touch {work}/ended.{name}
"""
"""What a local job does: it looks for processes that carry the sign of a lease of its nodes."""


@pytest.fixture
def lending(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawaySlurm]:
    """A Slurm of its own, whose prolog and epilog are those of the lab's site."""
    reason = available()
    if reason:
        pytest.skip(reason)
    agents = {"mode": "agent", "runtime_directory": str(lab.root / "lent"), "reclaim_timeout": "10s"}
    terms = {"initial_tr": "2m", "idle_timeout": 5, "daemon": {"worker_timeout": 8}}
    lab.configure(site("slurm", (2, 16, "30m"), donation=agents, **terms))
    hooks = lab.root / "hooks"
    lab.run("site", "install-hooks", "hpc", "--write", hooks)
    lines = (
        f"Prolog={hooks}/adaptor-prolog",
        f"Epilog={hooks}/adaptor-epilog",
        "PrologFlags=Alloc,DeferBatch",
    )
    with ThrowawaySlurm(ClusterOptions(extra=lines)) as cluster:
        for name, value in cluster.env.items():
            monkeypatch.setenv(name, value)
        yield cluster
        lab.close()


def lent(lab: Lab) -> set[str]:
    return {pilot["node"] for pilot in lab.pilots() if pilot["node"] and pilot["state"] == "running"}


def ours(lab: Lab, node: str) -> list[int]:
    """The processes that carry the sign of a lease of a node, as a local job looks for them."""
    sign = f"ADAPTOR_SUPERVISED={lab.root}/lent/{os.getuid()}/{node}".encode()
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if sign in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def states(cluster: ThrowawaySlurm) -> set[str]:
    return set(cluster.run(["sinfo", "-h", "-N", "-p", "batch", "-o", "%t"]).split())


def local_job(cluster: ThrowawaySlurm, lab: Lab, name: str) -> None:
    """Run it on two nodes."""
    script = lab.root / f"{name}.sh"
    script.write_text(LOOK.format(work=lab.work, runtime=lab.root / "lent", name=name))
    cluster.run(["sbatch", "-p", "batch", "-N2", "--exclusive", "-t10", "-o/dev/null", str(script)])
    until(lambda: (lab.work / f"ended.{name}").exists(), "the local job has run")
    found = (lab.work / f"found.{name}").read_text().splitlines()
    assert found == [], "processes of ours are on the nodes of a local job"
    assert len((lab.work / f"nodes.{name}").read_text().split()) == 2


@pytest.mark.nightly  # test_agents_on_slurm.py has one node
def test_a_local_job_finds_its_nodes_free_whether_the_daemon_lives_or_not(
    lending: ThrowawaySlurm, lab: Lab
) -> None:
    stay = lab.hold()
    stubborn = f"trap '' TERM; sleep 8 & {stay}; wait"
    fleeing = f"setsid sh -c 'trap \"\" TERM; sleep 300' & {stay}"
    lab.bag(["#ADAPTOR allocation=transparent", *[stubborn, fleeing, stay, f"{stay}; sleep 2"] * 10])
    lab.submit("tasks.bag")
    until(lambda: len(lent(lab)) == 4, "all four nodes are lent")
    until(lambda: lab.status()["running"] == 16, "tasks run on all of them")
    assert states(lending) == {"idle"}
    nodes = [f"n{number}" for number in range(1, 5)]
    until(lambda: all(len(ours(lab, node)) > 4 for node in nodes), "their processes carry the sign")
    local_job(lending, lab, "first")
    until(lambda: len(lent(lab)) == 4, "its nodes are lent again")
    lab.kill_daemon()
    local_job(lending, lab, "second")
    lab.release()
    lab.run("daemon", "start")
    lab.wait()
    exactly_one_result_each(lab, 1, 40)
    assert states(lending) == {"idle"}
    # By the site: a busy machine may start no task on a node between its two local jobs.
    reclaimed = [pilot for pilot in lab.pilots() if pilot["state"] == "preempted"]
    assert len(reclaimed) >= 2
    assert all("reclaimed for local job" in pilot["end_reason"] for pilot in reclaimed)
