"""Pilot arrays on a real Slurm: one submission for all pilots of a decision, whatever becomes of each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

PILOTS = 40


def narrow(**keys: Any) -> str:
    """Pilots of one processor, as many as that, all of them equal."""
    return site(
        "slurm",
        (PILOTS, 1, "10m"),
        heuristic="static",
        initial_tr="1m",
        idle_timeout=5,
        command_timeout=20,
        **keys,
    )


def jobs(slurm: ThrowawaySlurm, *options: str) -> list[tuple[str, str]]:
    """Ids and names of the jobs in the queue, elements of arrays one by one."""
    printed = slurm.run(["squeue", "-h", "-r", "-o", "%i %j", *options])
    return [(id, name) for id, _, name in (line.partition(" ") for line in printed.splitlines())]


def arrays(slurm: ThrowawaySlurm) -> set[str]:
    return {id.partition("_")[0] for id, _ in jobs(slurm, "-t", "all")}


def ended(lab: Lab, pilot: int) -> str:
    return next(str(each["state"]) for each in lab.pilots() if each["id"] == pilot)


def dying_at_sbatch(folder: Path, lab: Lab) -> str:
    """A folder for PATH, in which sbatch kills the daemon after Slurm has taken the first array."""
    folder.mkdir()
    script = folder / "sbatch"
    script.write_text(
        "#!/bin/sh\n"
        f"PATH=${{PATH#{folder}:}}\n"
        'answer=$(sbatch "$@") || exit\n'
        f'case "$*" in *--array=*) if mkdir {folder}/done 2>/dev/null; then\n'
        f"  kill -9 $(cat {folder}/pid); exit 1; fi;; esac\n"
        'echo "$answer"\n'
    )
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_a_thousand_tasks_in_forty_pilots_survive_what_befalls_daemon_and_pilots(
    slurm: ThrowawaySlurm, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = 1000
    monkeypatch.setenv("PATH", dying_at_sbatch(tmp_path / "dying", lab))
    lab.configure(narrow())
    lab.run("daemon", "start")
    (tmp_path / "dying" / "pid").write_text(str(lab.daemon_pid()))
    daemon = psutil.Process(lab.daemon_pid())
    lab.bag(["sleep 0.2; echo $ADAPTOR_TASK_ID"] * tasks)
    lab.submit("tasks.bag")
    daemon.wait(60)
    assert len(jobs(slurm)) == PILOTS
    assert len(arrays(slurm)) == 1
    lab.run("daemon", "start")
    until(lambda: lab.status()["done"] > 20, "tasks are done in the pilots of the array")
    assert len(arrays(slurm)) == 1, "what Slurm had taken is not submitted again"
    running = [pilot for pilot in lab.pilots() if pilot["state"] == "running"]
    waiting = [pilot for pilot in lab.pilots() if pilot["state"] == "queued"]
    assert len(running) == 16
    assert len(waiting) == PILOTS - 16
    slurm.run(["scancel", running[0]["job"], waiting[-1]["job"]])
    until(lambda: ended(lab, running[0]["id"]) == "cancelled", "the end of one that ran is seen")
    until(lambda: ended(lab, waiting[-1]["id"]) in ("cancelled", "withdrawn"), "and of one that waited")
    lab.wait(timeout=400)
    exactly_one_result_each(lab, 1, tasks)
    until(lambda: not jobs(slurm), "no pilot is left in the queue")


def test_an_element_is_requeued_and_another_is_held(slurm: ThrowawaySlurm, lab: Lab) -> None:
    tasks = 200
    lab.configure(narrow())
    lab.bag(["sleep 1; echo $ADAPTOR_TASK_ID"] * tasks)
    lab.submit("tasks.bag")
    until(lambda: lab.status()["done"] > 5, "the bag is under way")
    running = next(pilot for pilot in lab.pilots() if pilot["state"] == "running")
    waiting = [pilot for pilot in lab.pilots() if pilot["state"] == "queued"]
    held = waiting[0]["job"]
    slurm.run(["scontrol", "hold", held])
    slurm.run(["scontrol", "update", f"JobId={running['job']}", "Requeue=1"])
    slurm.run(["scontrol", "requeue", running["job"]])
    until(lambda: ended(lab, running["id"]) == "queued", "it waits again")
    until(lambda: lab.status()["done"] == tasks, "all is done by the others")
    lab.wait()
    exactly_one_result_each(lab, 1, tasks)
    until(lambda: not jobs(slurm), "no pilot is left in the queue")
