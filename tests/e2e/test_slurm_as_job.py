"""What tasks do with the job that they find themselves to be, by each way in, on a real Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.batch_script import job_number
from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, site
from tests.e2e.test_local_executor import said

pytestmark = pytest.mark.slurm

SITE = site("slurm", (1, 8, "20m"), initial_tr="1m", idle_timeout=20)
USUAL = ("--replicas", "0", "--retries", "0")
ABOUT_ITSELF = "squeue -h -j $SLURM_JOB_ID -o '%i %T %N %C'"
OWN_END = "sleep 1; scancel $SLURM_JOB_ID; sleep 600"


def output(task: dict[str, object]) -> list[str]:
    return Path(str(task["stdout"])).read_text().splitlines()


def test_a_line_is_a_job_of_its_own(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lines = [
        "srun sh -c 'echo $SLURM_JOB_ID $SLURM_NTASKS >> srun-1'",
        "srun -n 2 sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'",
        ABOUT_ITSELF,
        "scontrol show job $SLURM_JOB_ID",
        OWN_END,
        "env -u BASH_FUNC_srun%% /usr/bin/srun hostname; echo $?",
        "sbatch --wait -n 2 -o large.out large.sh",
    ]
    lab.bag(lines)
    lab.bag(["#!/bin/sh", "srun sh -c 'echo $SLURM_JOB_ID $SLURM_PROCID'"], "large.sh")
    lab.run("run", "tasks.bag", "--cpus", "2", *USUAL, expect=3)
    tasks = lab.results()
    assert [task["state"] for task in tasks] == [*["done"] * 4, "cancelled", "done", "done"]
    assert (lab.work / "srun-1").read_text() == f"{job_number(1, 0)} 1\n", "once, wherever the pilot is"
    assert sorted(output(tasks[1])) == ["0 of 2", "1 of 2"]
    assert output(tasks[2]) == [f"{job_number(1, 2)} RUNNING {tasks[2]['node']} 2"]
    assert output(tasks[3])[0].startswith(f"JobId={job_number(1, 3)} ")
    assert output(tasks[5]) == ["1"], "Slurm knows no such job"
    ranks = [line.split() for line in (lab.work / "large.out").read_text().splitlines()]
    assert sorted(rank for _, rank in ranks) == ["0", "1"], "a job that a task submits has Slurm's srun"
    assert all(int(job) < job_number(1, 0) for job, _ in ranks)
    (pilot,) = lab.pilots()
    assert pilot["state"] in ("running", "completed"), "scancel has ended one task, and nothing else"


def test_a_task_on_two_nodes_is_a_job_of_its_own(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    rank = "echo $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME, job $SLURM_JOB_ID on $SLURM_JOB_NODELIST"
    lab.bag([f"srun sh -c '{rank}'", f"srun -n 4 sh -c '{rank}'", ABOUT_ITSELF, OWN_END])
    lab.run("run", "tasks.bag", "--nodes", "2", "--cpus", "2", *USUAL, expect=3)
    tasks = lab.results()
    assert [task["state"] for task in tasks] == ["done", "done", "done", "cancelled"]
    for number, each in ((0, 1), (1, 2)):
        nodes, count = tasks[number]["node"], 2 * each
        job = f"job {job_number(1, number)} on {nodes}"
        on = [node for node in nodes.split(",") for _ in range(each)]
        expected = [f"{rank} of {count} on {node}, {job}" for rank, node in enumerate(on)]
        assert sorted(output(tasks[number])) == expected
    assert output(tasks[2]) == [f"{job_number(1, 2)} RUNNING {tasks[2]['node']} 4"]
    (pilot,) = lab.pilots()
    assert pilot["state"] in ("running", "completed")


def test_a_call_is_a_job_of_its_own(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    told = said(
        lab.program("""
            import adaptor, concurrent.futures, os, subprocess

            def call(line):
                ran = subprocess.run(line, shell=True, capture_output=True, text=True)
                return os.environ["SLURM_JOB_ID"], ran.stdout.strip()

            if __name__ == "__main__":
                lines = ["srun echo one", "srun -n 2 echo two", "squeue -h -j $SLURM_JOB_ID -o '%i %T %C'"]
                with adaptor.Executor(cpus=2, time="1m") as executor:
                    for line in lines:
                        print(*executor.submit(call, line).result(), sep="|")
                    ended = executor.submit(call, "scancel $SLURM_JOB_ID; sleep 600")
                    concurrent.futures.wait([ended])
                    print(ended.cancelled())
                    print(*executor.submit(call, "srun echo after").result(), sep="|")
        """)
    )
    numbers = [str(job_number(1, task)) for task in range(5)]
    one, *two, about, ended, after = told.splitlines()
    assert (one, two) == (f"{numbers[0]}|one", [f"{numbers[1]}|two", "two"])
    assert about == f"{numbers[2]}|{numbers[2]} RUNNING 2"
    assert ended == "True"
    assert after == f"{numbers[4]}|after"
    assert {pilot["state"] for pilot in lab.pilots()} <= {"running", "completed"}


@pytest.mark.nightly  # rare in scripts
def test_an_element_cancels_its_array_by_the_number_that_it_finds(slurm: ThrowawaySlurm, lab: Lab) -> None:
    """It is that of the bag: Slurm's job of the same number is the pilot here."""
    lab.configure(SITE)
    script = lab.bag(
        [
            "#!/bin/bash",
            "#SBATCH --array=0-3 --output=%a.out",
            "[ $SLURM_ARRAY_TASK_ID = 0 ] || exec sleep 600",
            "until squeue -h -j $SLURM_ARRAY_JOB_ID -t R -o %K | grep -q 3; do sleep 0.5; done",
            "scancel ${SLURM_ARRAY_JOB_ID}_[1,3]; scancel $SLURM_ARRAY_JOB_ID; sleep 600",
        ],
        "array.sh",
    )
    lab.submit(script)
    lab.wait(expect=3)
    assert [task["state"] for task in lab.results()] == ["cancelled"] * 4
    assert {pilot["state"] for pilot in lab.pilots()} <= {"running", "completed"}
