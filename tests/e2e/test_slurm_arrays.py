"""Pilot arrays on a real Slurm: one submission for all pilots of a decision, whatever becomes of each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

PILOTS = 40


def narrow(pilots: int = PILOTS, **keys: Any) -> str:
    """Pilots of one processor, as many as that, all of them equal."""
    usual: dict[str, Any] = {
        "heuristic": "static",
        "initial_tr": "1m",
        "idle_timeout": 5,
        "command_timeout": 20,
    }
    return site("slurm", (pilots, 1, "10m"), **{**usual, **keys})


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


@pytest.mark.nightly
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    "own_slurm", [ClusterOptions(cpus=32, min_job_age=3600)], indirect=True, ids=["128 processors"]
)
def test_ten_thousand_tasks_in_five_hundred_pilots_run_once_each(own_slurm: ThrowawaySlurm, lab: Lab) -> None:
    """The executions and the jobs are counted from outside."""
    tasks, pilots, ran = 10_000, 500, lab.work / "ran"
    lab.configure(narrow(pilots, initial_tr="10m", idle_timeout=60, max_submissions=2 * pilots))
    lab.bag([f"echo $ADAPTOR_TASK_ID >> {ran}; sleep 1"] * tasks)
    lab.submit("--replicas", "0", "tasks.bag")
    until(lambda: lab.status()["done"] > 200, "tasks are done in the pilots of the array")
    assert len(jobs(own_slurm)) == pilots
    lab.kill_daemon()
    lab.run("daemon", "start")
    until(lambda: lab.status()["done"] > 1000, "and go on to be done after the daemon was killed")
    own_slurm.stop_controller(kill=True)
    until(lambda: lab.ask("status", "--sites")[0]["problem"], "the daemon says that Slurm does not answer")
    lab.kill_daemon()
    lab.run("daemon", "start")
    before = lab.status()["done"]
    until(lambda: lab.status()["done"] > before + 200, "tasks are done while slurmctld is away")
    own_slurm.start_controller()
    lab.wait(timeout=900)
    exactly_one_result_each(lab, 1, tasks)
    assert sorted(map(int, ran.read_text().split())) == list(range(tasks))
    until(lambda: not jobs(own_slurm), "no pilot is left in the queue")
    asked = {pilot["job"].partition("_")[0] for pilot in lab.pilots()}
    assert arrays(own_slurm) == asked, "Slurm has no job that the journal has not"


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


@pytest.mark.nightly
@pytest.mark.parametrize("own_slurm", [ClusterOptions(extra=("MaxArraySize=1",))], indirect=True, ids=["1"])
def test_where_slurm_takes_no_arrays_pilots_are_submitted_one_by_one(
    own_slurm: ThrowawaySlurm, lab: Lab
) -> None:
    tasks = 60
    lab.configure(narrow(20))
    lab.bag([f"{lab.hold()}; echo $ADAPTOR_TASK_ID"] * tasks)
    lab.submit("tasks.bag")
    until(lambda: len(jobs(own_slurm)) == 20, "all pilots are in the queue")
    assert len(arrays(own_slurm)) == 20
    lab.release()
    lab.wait(timeout=400)
    exactly_one_result_each(lab, 1, tasks)


def refusing_more_than(most: int, folder: Path) -> str:
    """A folder for PATH, in which sbatch refuses as Slurm does where a user may have so many jobs."""
    folder.mkdir()
    script = folder / "sbatch"
    script.write_text(
        "#!/bin/bash\n"
        f"PATH=${{PATH#{folder}:}}\n"
        "array=$(printf '%s\\n' \"$@\" | sed -n 's/^--array=0-//p')\n"
        "there=$(squeue -h -r -t PD,R,CF --me | wc -l)\n"
        f"if ((there + ${{array:-0}} + 1 > {most})); then\n"
        "  echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2\n"
        '  echo "sbatch: error: Batch job submission failed: Job violates policy" >&2; exit 1\n'
        "fi\n"
        'exec sbatch "$@"\n'
    )
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_where_slurm_takes_a_part_of_an_array_that_part_does_the_work(
    slurm: ThrowawaySlurm, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", refusing_more_than(20, tmp_path / "few"))
    tasks = 200
    lab.configure(narrow())
    lab.bag([f"{lab.hold()}; echo $ADAPTOR_TASK_ID"] * tasks)
    lab.submit("tasks.bag")
    until(
        lambda: [pilot["state"] for pilot in lab.pilots()].count("refused") == PILOTS - 20,
        "as many pilots as Slurm allows, and the others refused",
    )
    assert len(jobs(slurm)) == 20
    assert len(lab.pilots()) == PILOTS
    shown = lab.run("status", "--pilots").stdout.splitlines()
    assert len(shown) < 6, "an array is one line"
    assert "QOSMaxSubmitJobPerUserLimit" in lab.run("why", "--kind", "refused").stdout
    lab.release()
    lab.wait(timeout=400)
    exactly_one_result_each(lab, 1, tasks)
