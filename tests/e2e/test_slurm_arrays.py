"""Pilot arrays on a real Slurm: one submission for all pilots of a decision, whatever becomes of each."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.e2e.many_pilots import PILOTS, dying_at, narrow, run_ten_thousand_tasks
from tests.living import PATIENCE, until

pytestmark = pytest.mark.slurm


def jobs(slurm: ThrowawaySlurm, *options: str) -> list[tuple[str, str]]:
    """Ids and names of the jobs in the queue, elements of arrays one by one."""
    printed = slurm.run(["squeue", "-h", "-r", "-o", "%i %j", *options])
    return [(id, name) for id, _, name in (line.partition(" ") for line in printed.splitlines())]


def arrays(slurm: ThrowawaySlurm) -> set[str]:
    return {id.partition("_")[0] for id, _ in jobs(slurm, "-t", "all")}


def ended(lab: Lab, pilot: int) -> str:
    return next(str(each["state"]) for each in lab.pilots() if each["id"] == pilot)


def test_a_thousand_tasks_in_forty_pilots_survive_what_befalls_daemon_and_pilots(
    slurm: ThrowawaySlurm, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = 1000
    monkeypatch.setenv("PATH", dying_at("sbatch", "*--array=*", tmp_path / "dying"))
    lab.configure(narrow("slurm"))
    lab.run("daemon", "start")
    (tmp_path / "dying" / "pid").write_text(str(lab.daemon_pid()))
    daemon = psutil.Process(lab.daemon_pid())
    lab.bag(["sleep 0.2; echo $ADAPTOR_TASK_ID"] * tasks)
    lab.submit("tasks.bag")
    daemon.wait(PATIENCE)
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
    lab.wait()
    exactly_one_result_each(lab, 1, tasks)
    until(lambda: not jobs(slurm), "no pilot is left in the queue")


@pytest.mark.nightly
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    "own_slurm", [ClusterOptions(cpus=32, min_job_age=3600)], indirect=True, ids=["128 processors"]
)
def test_ten_thousand_tasks_in_five_hundred_pilots_run_once_each(own_slurm: ThrowawaySlurm, lab: Lab) -> None:
    """The executions and the jobs are counted from outside."""

    def without_slurm() -> None:
        own_slurm.stop_controller(kill=True)
        until(
            lambda: lab.ask("status", "--sites")[0]["problem"], "the daemon says that Slurm does not answer"
        )
        lab.restart_daemon()
        before = lab.status()["done"]
        until(lambda: lab.status()["done"] > before + 200, "tasks are done while slurmctld is away")
        own_slurm.start_controller()

    run_ten_thousand_tasks(lab, "slurm", 1.0, lambda: len(jobs(own_slurm)), without_slurm)
    asked = {pilot["job"].partition("_")[0] for pilot in lab.pilots()}
    assert arrays(own_slurm) == asked, "Slurm has no job that the journal has not"


@pytest.mark.nightly  # what an operator does by hand
def test_an_element_is_requeued_and_another_is_held(slurm: ThrowawaySlurm, lab: Lab) -> None:
    tasks = 200
    lab.configure(narrow("slurm"))
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
    lab.configure(narrow("slurm", 20))
    lab.bag([f"{lab.hold()}; echo $ADAPTOR_TASK_ID"] * tasks)
    lab.submit("tasks.bag")
    until(lambda: len(jobs(own_slurm)) == 20, "all pilots are in the queue")
    assert len(arrays(own_slurm)) == 20
    lab.release()
    lab.wait()
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
    lab.configure(narrow("slurm"))
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
    lab.wait()
    exactly_one_result_each(lab, 1, tasks)


def minutes_of_waiting(slurm: ThrowawaySlurm) -> list[int]:
    """That waiting pilots ask for."""
    found = []
    for line in slurm.run(["squeue", "-h", "-r", "-t", "PD", "-o", "%l %j"]).splitlines():
        limit, _, name = line.partition(" ")
        if name.startswith("adaptor"):
            *hours, minutes, _ = map(int, limit.split(":"))
            found.append(60 * sum(hours) + minutes)
    return found


@pytest.mark.nightly  # waits for a schedule of minutes
def test_pilots_that_wait_for_unknown_tasks_ask_for_less_when_these_are_known(
    slurm: ThrowawaySlurm, lab: Lab
) -> None:
    """Eight processors are free from in four minutes on, for eight minutes; then a job wants all nodes."""
    for nodes, minutes in ((2, 4), (1, 12), (4, 30)):
        slurm.occupy(nodes, minutes)
    limits = {"max_pending_requests": 4, "max_pilots": 100, "max_proc": 16, "max_tr": "1h"}
    lab.configure(site("slurm", heuristic="elastic", limits=limits))
    lab.bag(["sleep 20"] * 60)
    lab.submit("tasks.bag")
    until(lambda: 60 in minutes_of_waiting(slurm), "pilots wait with the longest walltime")
    until(lambda: sum(each <= 8 for each in minutes_of_waiting(slurm)) >= 20, "twenty fit before it")
    assert "tasks need no more, and it starts sooner" in lab.run("why", "last").stdout
