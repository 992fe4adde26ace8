"""What stands in front of Slurm's srun, by itself: its options, names of files, and locks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adaptor.worker.jobs import srun
from adaptor.worker.jobs.srun import StepError, environment_of, file_name, over_nodes, processors, read, take


@pytest.mark.parametrize(
    ("words", "processes", "cpus"),
    [
        ("a.out -n 3", 4, None),
        ("-n 1 a.out", 1, None),
        ("-n2 -c3 a.out", 2, 3),
        ("--ntasks=2 --exclusive --cpus-per-task 3 -- a.out", 2, 3),
        ("-N1 --ntasks-per-node=2 --mem=1G --mpi=none a.out", 2, None),
        ("-N 1-4 a.out", 4, None),
        ("-u -K --exact --cpu_bind=cores -J name a.out", 4, None),
        ("-l --jobid=7 --propagate=STACK --export=all a.out", 4, None),
    ],
)
def test_how_many_processes_a_step_has(words: str, processes: int, cpus: int | None) -> None:
    step = read(words.split(), {"SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"})
    assert (step.processes, step.cpus, step.command[0]) == (processes, cpus, "a.out")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("-n 0 a.out", "--ntasks 0: not a number above 0"),
        ("-N 2 a.out", "--nodes 2: not supported"),
        ("--multi-prog x", "--multi-prog: not supported"),
        ("--jobid=8 a.out", "--jobid 8: not supported"),
        ("-u5 a.out", "-u5: not supported"),
        ("-unknown a.out", "-unknown: not supported"),
        ("--time=5 a.out", "--time: not supported"),
        ("--export=NONE a.out", "--export=NONE: not supported"),
        ("-n 2", "a call without a program: not supported"),
        ("-n", "-n without a value"),
    ],
)
def test_what_cannot_be_followed(words: str, problem: str) -> None:
    with pytest.raises(StepError, match=problem):
        read(words.split(), {})


def test_a_step_has_at_most_the_processors_of_its_element() -> None:
    assert processors(read(["-n2", "-c2", "x"], {}), 4) == 4
    assert processors(read(["-n9", "-O", "x"], {}), 4) == 4
    with pytest.raises(StepError, match="More processors requested than permitted"):
        processors(read(["-n3", "-c2", "x"], {}), 4)


def test_what_a_process_finds() -> None:
    step = read(["-n3", "-J", "step", "--export=ALL,A=1", "x"], {})
    told = environment_of(step, 2, {"SLURM_NODELIST": "n1", "SLURM_NTASKS": "9", "B": "2"})
    assert (told["SLURM_PROCID"], told["SLURM_NTASKS"], told["SLURM_GTIDS"]) == ("2", "3", "0,1,2")
    assert (told["SLURM_STEP_NODELIST"], told["SLURM_JOB_NAME"], told["A"], told["B"]) == (
        "n1",
        "step",
        "1",
        "2",
    )


def test_names_of_files() -> None:
    given = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "3", "SLURM_ARRAY_TASK_ID": "5"}
    assert file_name("o-%A_%3a-%j.%t%%", 1, given) == "o-3_005-7.1%"
    assert file_name("100%", 1, given) == "100%"


@pytest.mark.parametrize(("text", "found"), [("import mpi4py\n", True), ("print('no such thing')\n", False)])
def test_programs_of_mpi_are_told_by_what_they_hold(tmp_path: Path, text: str, found: bool) -> None:
    file = tmp_path / "program.py"
    file.write_text(text)
    assert srun.is_mpi([sys.executable, "-u", str(file)]) is found


def test_a_binary_of_mpi_is_told_by_its_libraries(tmp_path: Path) -> None:
    program = tmp_path / "a.out"
    program.write_bytes(b"\x7fELF" + bytes(srun._CHUNK - 9) + b"libmpi.so.40\0")
    program.chmod(0o755)
    assert srun.is_mpi([str(program)])


HOLD = """
import sys
from adaptor.worker.jobs.srun import take
handle = take(sys.argv[1], 7, int(sys.argv[2]), 3)
print("taken", flush=True)
sys.stdin.read()
"""


def test_processors_are_taken_until_their_process_ends(tmp_path: Path) -> None:
    slots = tmp_path / "slots"
    slots.touch()

    def holder(wanted: int) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", HOLD, str(slots), str(wanted)]
        pipe = subprocess.PIPE
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)

    first, second = holder(2), holder(1)
    for each in (first, second):
        assert each.stdout is not None
        assert each.stdout.readline() == "taken\n"
    third = holder(2)
    first.communicate("")
    assert third.stdout is not None
    assert third.stdout.readline() == "taken\n", "as two are free again"
    for each in (second, third):
        each.communicate("")


def test_without_locks_a_step_starts_at_once(tmp_path: Path) -> None:
    assert take(str(tmp_path / "missing"), 1, 1, 1) is None


OVER_NODES = {
    "SLURM_JOB_ID": "201326592", "SLURM_JOBID": "201326592", "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_NODELIST": "n3,n4", "SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_CONF": "/slurm.conf", "B": "a b",
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("a.out", "--nodes=2 --nodelist=n3,n4 --ntasks=2"),
        ("-n 4 -c 2 a.out", "--nodes=2 --nodelist=n3,n4 --ntasks=4 --cpus-per-task=2"),
        ("-n1 a.out", "--nodes=1 --nodelist=n3 --ntasks=1"),
        ("-N 1 -w n4 -n 1 a.out", "--nodes=1 --nodelist=n4 --ntasks=1"),
        ("--ntasks-per-node=1 -K -N2 a.out", "--nodes=2 --nodelist=n3,n4 --ntasks-per-node=1 -K"),
        ("--jobid=201326592 --time=5 a.out", "--nodes=2 --nodelist=n3,n4 --ntasks=2 --time=5"),
    ],
)
def test_on_several_nodes_a_step_is_one_of_the_pilot_s_job(words: str, told: str) -> None:
    step = read(words.split(), OVER_NODES)
    arguments, environment = over_nodes(step, OVER_NODES, "77")
    options, command = arguments[: arguments.index("/bin/sh")], arguments[-2:]
    usual = "--jobid=77 --overlap --whole --mem=0 --cpu-bind=none"
    options = sorted(options)
    assert options == sorted(f"{usual} {told}".split())
    assert command == ["sh", "a.out"]
    assert environment == {"SLURM_CONF": "/slurm.conf", "B": "a b"}, "Slurm's srun reads its own from these"


def test_processes_on_several_nodes_find_the_job_of_their_task() -> None:
    given = {**OVER_NODES, "SLURM_SUBMIT_DIR": "/a b"}
    script = over_nodes(read(["x"], given), given, "77")[0][-3]
    assert "export SLURM_JOB_ID=201326592;" in script
    assert "export SLURM_SUBMIT_DIR='/a b';" in script
    assert "SLURM_TASKS_PER_NODE" not in script, "that is the step's"


def test_a_step_with_processors_of_its_own_shares_none() -> None:
    arguments, _ = over_nodes(read(["-n1", "--exclusive", "x"], OVER_NODES), OVER_NODES, "77")
    assert "--exclusive" in arguments
    assert not {"--overlap", "--whole"} & {*arguments}
