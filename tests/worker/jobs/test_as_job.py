"""The job that a task finds itself to be: of its own size, or none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor.batch_script import BatchScript, job_number
from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.resources import TaskSize
from adaptor.worker.jobs.as_job import NUMBERS, TaskJobs, scheduler_of

OF_SLURM = {"SLURM_JOB_ID": "77", "SLURM_JOB_PARTITION": "batch", "SLURM_JOB_NODELIST": "n[1-4]"}
OF_PBS = {"PBS_JOBID": "77.head", "PBS_NODEFILE": "/spool/77", "NCPUS": "4", "PBS_QUEUE": "workq"}
OF_GRID_ENGINE = {"JOB_ID": "77", "SGE_ROOT": "/sge", "PE_HOSTFILE": "/spool/77", "NSLOTS": "16"}
SIZE = TaskSize(processors=2, memory=3 * 2**20)
BAG = BagContext(3, "/work", "/out", {}, SIZE)
LEASE = Lease(AttemptKey(3, 5, 1), "true", 0.0)
OVER_NODES = msgspec.structs.replace(LEASE, nodes=("n3", "n4"))
NUMBER = str(job_number(3, 5))


def found(
    folder: Path, worker: dict[str, str], bag: BagContext = BAG, lease: Lease = LEASE, **given: str
) -> dict[str, str]:
    return TaskJobs(folder / "scripts", "n3", worker, folder).environment(given, bag, lease)


def test_without_a_scheduler_there_is_no_job(tmp_path: Path) -> None:
    assert found(tmp_path, {"TMPDIR": "/scratch"}, PATH="/bin") == {"PATH": "/bin"}
    assert TaskJobs(tmp_path, "n3", {}, tmp_path).numbers(BAG, LEASE) == {}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("worker", "scheduler"),
    [
        (OF_SLURM, "slurm"),
        (OF_PBS, "pbs"),
        (OF_GRID_ENGINE, "gridengine"),
        ({"JOB_ID": "7"}, None),
        ({}, None),
    ],
)
def test_the_scheduler_of_a_worker(worker: dict[str, str], scheduler: str | None) -> None:
    assert scheduler_of(worker) == scheduler


def test_a_job_of_slurm_has_the_size_of_the_task(tmp_path: Path) -> None:
    told = found(tmp_path, OF_SLURM, PATH="/bin")
    assert {told[name] for name in ("SLURM_JOB_ID", "SLURM_JOBID")} == {NUMBER}
    assert {told[name] for name in ("SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURMD_NODENAME")} == {"n3"}
    assert {told[name] for name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")} == {"1"}
    sizes = ("SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE", "SLURM_TASKS_PER_NODE")
    assert {told[name] for name in sizes} == {"2"}
    assert (told["SLURM_MEM_PER_NODE"], told["SLURM_SUBMIT_DIR"]) == ("3", "/work")
    assert told["SLURM_JOB_PARTITION"] == "batch", "as the pilot has it"
    assert "SLURM_NTASKS" not in told, "srun starts one process"
    first, rest = told["PATH"].split(":")
    assert rest == "/bin"
    assert {"srun", "scancel", "squeue", "sacct", "scontrol"} <= {path.name for path in Path(first).iterdir()}


def test_a_job_of_slurm_on_several_nodes(tmp_path: Path) -> None:
    told = found(tmp_path, OF_SLURM, lease=OVER_NODES)
    assert (told["SLURM_NODELIST"], told["SLURM_NNODES"]) == ("n3,n4", "2")
    assert (told["SLURM_TASKS_PER_NODE"], told["SLURM_JOB_CPUS_PER_NODE"]) == ("2(x2)", "2(x2)")
    assert (told["SLURMD_NODENAME"], told["SLURM_CPUS_ON_NODE"]) == ("n3", "2")


def test_a_job_of_pbs_has_the_size_of_the_task(tmp_path: Path) -> None:
    told = found(tmp_path, OF_PBS)
    assert told["PBS_JOBID"] == f"{NUMBER}.adaptor"
    assert (told["NCPUS"], told["OMP_NUM_THREADS"]) == ("2", "2")
    assert Path(told["PBS_NODEFILE"]).read_text() == "n3\nn3\n"
    assert (told["PBS_O_WORKDIR"], told["PBS_ENVIRONMENT"], told["PBS_QUEUE"]) == (
        "/work",
        "PBS_BATCH",
        "workq",
    )
    assert "PATH" not in told, "the commands are in front of Slurm's"
    one = found(tmp_path, OF_PBS, BagContext(3, "/work", "/out", {}))
    assert (one["NCPUS"], one["OMP_NUM_THREADS"]) == ("1", "1"), "as PBS tells a job of one processor"
    mine = found(tmp_path, OF_PBS, OMP_NUM_THREADS="7")
    assert (mine["NCPUS"], mine["OMP_NUM_THREADS"]) == ("2", "7"), "its user said so"


def test_on_several_nodes_of_pbs_mpi_finds_the_nodes_and_asks_no_daemon_of_pbs(tmp_path: Path) -> None:
    told = found(tmp_path, OF_PBS, lease=OVER_NODES)
    assert Path(told["PBS_NODEFILE"]).read_text() == "n3\nn3\nn4\nn4\n"
    assert "PBS_ENVIRONMENT" not in told
    assert {told["HYDRA_HOST_FILE"], told["OMPI_MCA_orte_default_hostfile"]} == {told["PBS_NODEFILE"]}
    assert told["PBS_NODEFILE"] != found(tmp_path, OF_PBS)["PBS_NODEFILE"]


def test_a_job_of_grid_engine_has_the_size_of_the_task(tmp_path: Path) -> None:
    told = found(tmp_path, OF_GRID_ENGINE)
    assert (told["JOB_ID"], told["NSLOTS"], told["NHOSTS"], told["HOSTNAME"]) == (NUMBER, "2", "1", "n3")
    assert Path(told["PE_HOSTFILE"]).read_text() == "n3 2 all.q@n3 UNDEFINED\n"
    told = found(tmp_path, OF_GRID_ENGINE, lease=OVER_NODES)
    assert (told["NSLOTS"], told["NHOSTS"]) == ("4", "2")
    assert Path(told["PE_HOSTFILE"]).read_text().splitlines()[1] == "n4 2 all.q@n4 UNDEFINED"


def test_a_script_finds_the_job_that_it_was_written_for_whatever_the_site_has(tmp_path: Path) -> None:
    script = BatchScript(body=b"#!/bin/sh\n", output="/o", variables={"SLURM_NTASKS": "2"})
    bag = BagContext(3, "/work", "/out", {}, SIZE, script=script)
    told = found(tmp_path, OF_PBS, bag)
    assert (told["SLURM_JOB_ID"], told["SLURM_NTASKS"]) == (NUMBER, "2")
    assert not {"PBS_JOBID", "PBS_NODEFILE", "SLURM_MEM_PER_NODE", "SLURM_SUBMIT_DIR"} & told.keys()


@pytest.mark.parametrize("worker", [OF_SLURM, OF_PBS, OF_GRID_ENGINE], ids=["slurm", "pbs", "gridengine"])
def test_each_call_of_a_bag_has_a_number_of_its_own(tmp_path: Path, worker: dict[str, str]) -> None:
    """They share a process, and so all else."""
    jobs = TaskJobs(tmp_path / "scripts", "n3", worker, tmp_path)
    other = msgspec.structs.replace(LEASE, key=AttemptKey(3, 6, 1))
    first, second = (jobs.environment({}, BAG, lease) for lease in (LEASE, other))
    differ = {name for name in first if first[name] != second[name]}
    assert differ == {name for name in NUMBERS if name in first}
    assert jobs.numbers(BAG, other) == {name: second[name] for name in differ}


def test_what_a_task_says_itself_wins(tmp_path: Path) -> None:
    lease = msgspec.structs.replace(LEASE, environment={"SLURM_NTASKS": "2", "SLURM_NODEID": "9"})
    told = found(tmp_path, OF_SLURM, lease=lease)
    assert (told["SLURM_NTASKS"], told["SLURM_NODEID"]) == ("2", "9")


def test_all_that_was_written_is_removed(tmp_path: Path) -> None:
    jobs = TaskJobs(tmp_path / "scripts", "n3", OF_SLURM, tmp_path)
    jobs.environment({}, BAG, LEASE)
    jobs.remove()
    assert not list(tmp_path.iterdir())
