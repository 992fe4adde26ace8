"""The real worker runs batch scripts: their copies, variables and files, and the srun in front of Slurm's."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adaptor.batch_script import OWN_SCRIPT, BatchScript, OwnScript
from adaptor.protocol.messages import Ending, Lease, Orders
from adaptor.resources import TaskSize
from adaptor.worker.openings import AHEAD
from adaptor.worker.scripts import scratch_of
from tests.worker.fake_daemon import Harness, key, task


def script(harness: Harness, *lines: str, **values: Any) -> BatchScript:
    body = "".join(f"{line}\n" for line in ("#!/bin/bash", *lines)).encode()
    given = {"output": f"{harness.output}/%x-%A_%3a-%N.out", **values}
    given["output"] = given["output"].replace("%x", "sim")
    return BatchScript(body=body, **given)


def element(number: int, index: int, *arguments: str, name: str = "SLURM_ARRAY_TASK_ID") -> Lease:
    return task(number, ["job.sh", *arguments], environment={name: str(index)})


def folders(harness: Harness) -> list[Path]:
    return [path for path in harness.folder.rglob("scripts-*") if path.is_dir()]


def test_elements_run_a_private_copy(harness: Harness) -> None:
    worker = harness.started(SLURM_JOB_ID="77", SLURM_JOB_PARTITION="batch")
    lines = (
        'echo "$0" "$@"',
        "echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_JOB_ID $SLURM_JOB_PARTITION $COLOUR",
        "stat -c %a $(dirname $0) $0",
        "exit $SLURM_ARRAY_TASK_ID",
    )
    given = script(harness, *lines, array=True, variables={"COLOUR": "red"})
    harness.lease(element(0, 3, "a b"), element(1, 4), bags=[harness.bag(script=given)])
    assert [harness.result(key(number)).exit_code for number in (0, 1)] == [3, 4]
    first = (harness.output / "sim-1_003-n1.out").read_text().splitlines()
    assert first[0].endswith("/slurmd/job00001/slurm_script a b"), "scripts look for */slurmd/job*"
    assert first[1:] == ["1 3 201326592 batch red", "500", "700"], "what is written there would be lost"
    second = (harness.output / "sim-1_004-n1.out").read_text().splitlines()
    assert second[1] == "1 4 201326593 batch red"
    harness.daemon.send(Orders(leave="the test is over"))
    assert harness.exit_code(worker) == 0
    assert not folders(harness)


def test_the_times_of_the_pilot_are_those_of_its_elements(harness: Harness) -> None:
    """Where sbatch tells them; the end is that at which the worker leaves, whatever Slurm says."""
    times = {"SLURM_JOB_START_TIME": "1795511543", "SLURM_JOB_END_TIME": "7"}
    harness.started(ADAPTOR_PILOT_END="4000000000.0", **times)
    given = script(harness, "echo $SLURM_JOB_START_TIME $SLURM_JOB_END_TIME", array=True)
    harness.lease(element(0, 3), bags=[harness.bag(script=given)])
    harness.result(key(0))
    assert (harness.output / "sim-1_003-n1.out").read_text() == "1795511543 4000000000\n"


def test_a_copy_goes_with_its_bag(harness: Harness) -> None:
    harness.started()
    harness.lease(element(0, 0), bags=[harness.bag(script=script(harness))])
    harness.result(key(0))
    (copy,) = (folder / "slurmd" / "job00001" for folder in folders(harness))
    assert copy.exists()
    harness.daemon.send(Orders(ended_bags=[1]))
    harness.daemon.until(lambda: not copy.exists())


def test_a_task_may_have_a_script_of_its_own(harness: Harness) -> None:
    """With its files, its variables and its size; the copy goes with the attempt."""
    worker = harness.started(SLURM_JOB_ID="77")
    given = script(harness, "echo of the bag", jobs=True, variables={"COLOUR": "red"})
    lines = ("#!/bin/bash", 'echo "$0" $COLOUR $SLURM_CPUS_ON_NODE ${ADAPTOR_SCRIPT-none}', "type -P srun")
    own = OwnScript(output=f"{harness.output}/%A-%a-%j", body="\n".join(lines).encode(), place=2)
    environment = {OWN_SCRIPT: msgspec.json.encode(own).decode(), "COLOUR": "blue", "PATH": "/bin"}
    environment["SLURM_ARRAY_TASK_ID"] = "9"
    lease = msgspec.structs.replace(task(5, ["x"], environment=environment), task=TaskSize(processors=2))
    shared = OwnScript(output=f"{harness.output}/shared")
    plain = task(6, ["x"], environment={OWN_SCRIPT: msgspec.json.encode(shared).decode()})
    harness.lease(lease, plain, bags=[harness.bag(script=given)])
    assert [harness.result(key(number)).exit_code for number in (5, 6)] == [0, 0]
    name, *told = (harness.output / "201326595-9-201326597").read_text().split()
    assert told[:3] == ["blue", "2", "none"]
    assert told[3].endswith("/bin/srun"), "the adaptor's srun stands before a PATH of the task"
    assert (harness.output / "shared").read_text() == "of the bag\n"
    assert name.endswith("/slurmd/job201326597/slurm_script")
    harness.daemon.until(lambda: not Path(name).parent.exists())
    harness.daemon.send(Orders(leave="the test is over"))
    assert harness.exit_code(worker) == 0


def test_streams_may_share_a_file_that_is_kept(harness: Harness) -> None:
    harness.started()
    harness.output.mkdir(exist_ok=True)
    path = harness.output / "log"
    path.write_text("before\n")
    given = script(harness, "echo out", "echo err >&2", output=str(path), append=True)
    harness.lease(element(0, 0), bags=[harness.bag(script=given)])
    harness.result(key(0))
    assert path.read_text() == "before\nout\nerr\n"
    quiet = script(
        harness, "echo out; echo err >&2", output="/dev/null", error=f"{harness.output}/new/%a.err"
    )
    harness.lease(Lease(key(0, bag=2), ["x"], 0.0), bags=[harness.bag(2, script=quiet)])
    harness.result(key(0, bag=2))
    assert (harness.output / "new" / "4294967294.err").read_text() == "err\n"


def test_elements_that_share_a_file_write_behind_each_other(harness: Harness) -> None:
    """As under sbatch, where each empties the file at its start, and none overwrites another one's lines."""
    harness.started(ADAPTOR_PROCESSORS=2)
    lines = (
        "touch begun-$SLURM_ARRAY_TASK_ID; until [ -e begun-0 ] && [ -e begun-1 ]; do sleep 0.05; done",
        "for i in 1 2 3 4 5; do echo $SLURM_ARRAY_TASK_ID $i; done",
    )
    given = script(harness, *lines, array=True, output=f"{harness.output}/%A.out")
    os.makedirs(harness.output, exist_ok=True)
    leases = [task(number, ["job.sh"], cwd=str(harness.output)) for number in (0, 1)]
    named = [
        msgspec.structs.replace(each, environment={"SLURM_ARRAY_TASK_ID": str(number)})
        for number, each in enumerate(leases)
    ]
    harness.lease(*named, bags=[harness.bag(script=given)])
    assert [harness.result(key(number)).exit_code for number in (0, 1)] == [0, 0]
    written = (harness.output / "1.out").read_text().splitlines()
    assert sorted(written) == [f"{index} {line}" for index in (0, 1) for line in range(1, 6)]


def test_an_element_has_a_part_of_slurm_tmpdir_of_its_own(harness: Harness, tmp_path: Path) -> None:
    """Two elements of a pilot do not meet there, and it is empty at first and gone afterwards."""
    scratch = tmp_path / "localscratch"
    scratch.mkdir()
    harness.started(SLURM_TMPDIR=str(scratch), TMPDIR=str(scratch))
    lines = ('echo "$SLURM_TMPDIR" "$TMPDIR"; ls -A "$SLURM_TMPDIR"; touch "$SLURM_TMPDIR/kept"',)
    given = script(harness, *lines, array=True)
    harness.lease(element(0, 3), element(1, 4), bags=[harness.bag(script=given)])
    assert [harness.result(key(number)).exit_code for number in (0, 1)] == [0, 0]
    for number, index in ((1, 3), (2, 4)):
        (line,) = (harness.output / f"sim-1_00{index}-n1.out").read_text().splitlines()
        assert line.split() == [f"{scratch}/{201326591 + number}.1"] * 2
    harness.daemon.until(lambda: not list(scratch.glob("2*")))


def test_an_element_that_waits_leaves_the_file_as_it_is(harness: Harness) -> None:
    """One processor: the files of others are opened ahead, those of elements at their start, as by slurmd."""
    harness.started(ADAPTOR_PROCESSORS=1)
    lines = ("echo $SLURM_ARRAY_TASK_ID; sleep 0.3; cat shared > seen-$SLURM_ARRAY_TASK_ID",)
    given = script(harness, *lines, array=True, output=f"{harness.output}/shared")
    os.makedirs(harness.output, exist_ok=True)
    many = range(AHEAD)
    leases = [msgspec.structs.replace(element(n, n), cwd=str(harness.output)) for n in many]
    harness.lease(*leases, bags=[harness.bag(script=given)])
    assert [harness.result(key(number)).exit_code for number in many] == [0] * AHEAD
    assert [(harness.output / f"seen-{n}").read_text() for n in many] == [f"{n}\n" for n in many]


@pytest.mark.parametrize(
    ("worker", "scratch"),
    [
        ({"SLURM_TMPDIR": "/local/7", "TMPDIR": "/tmp"}, "/local/7"),
        ({"TMPDIR": "/var/tmp/pbs.12.server", "PBS_JOBID": "12.server"}, "/var/tmp/pbs.12.server"),
        ({"TMPDIR": "/tmp/12.1.all.q", "JOB_ID": "12"}, "/tmp/12.1.all.q"),
        ({"TMPDIR": "/scratch/job-12", "SLURM_JOB_ID": "12"}, "/scratch/job-12"),
        ({"TMPDIR": "/scratch/user112", "SLURM_JOB_ID": "12"}, None),
        ({"TMPDIR": "/tmp", "SLURM_JOB_ID": "12"}, None),
        ({"SLURM_JOB_ID": "12"}, None),
    ],
)
def test_the_folder_for_temporary_files_that_is_the_pilots_own(
    worker: dict[str, str], scratch: str | None
) -> None:
    assert scratch_of(worker) == scratch


def test_an_output_that_is_somebody_elses_is_refused(harness: Harness, tmp_path: Path) -> None:
    harness.started()
    harness.output.mkdir(exist_ok=True)
    (tmp_path / "precious").write_text("mine")
    (harness.output / "log").symlink_to(tmp_path / "precious")
    given = script(harness, "echo out", output=f"{harness.output}/log")
    harness.lease(element(0, 0), bags=[harness.bag(script=given)])
    result = harness.result(key(0))
    assert result.ending is Ending.NOT_STARTED
    assert "it is a link" in (result.error or "")
    assert (tmp_path / "precious").read_text() == "mine"


def test_srun_starts_one_process_here(harness: Harness) -> None:
    harness.started()
    lines = (
        "srun -n1 --cpus-per-task 1 -u bash -c 'echo $SLURM_PROCID $SLURM_NTASKS; exit 5'",
        "echo $?",
        "PATH=/usr/bin:/bin",
        "srun --output=step echo kept",
        "srun -n 4 hostname",
        "srun --multi-prog x",
        "srun -c 9 hostname",
        "yes | srun cat | head -1",
    )
    given = script(harness, *lines, output=f"{harness.output}/out", error=f"{harness.output}/err")
    os.makedirs(harness.output, exist_ok=True)
    harness.lease(task(0, ["job.sh"], cwd=str(harness.output)), bags=[harness.bag(script=given)])
    assert harness.result(key(0)).exit_code == 0
    assert (harness.output / "out").read_text() == "0 1\n5\ny\n"
    assert (harness.output / "step").read_text() == "kept\n"
    assert (harness.output / "err").read_text().splitlines() == [
        "srun: error: Unable to create step: More processors requested than permitted (4; the task has 1)",
        "srun: error: --multi-prog: not supported inside a task of the adaptor",
        "srun: error: Unable to create step: More processors requested than permitted (9; the task has 1)",
    ]


def run_on_two(harness: Harness, *lines: str) -> tuple[int | None, str]:
    """The exit code and the output of a script of an element with two processors."""
    harness.started()
    given = script(harness, *lines, output=f"{harness.output}/out", variables={"SLURM_NTASKS": "2"})
    os.makedirs(harness.output, exist_ok=True)
    bag = harness.bag(script=given, task=TaskSize(processors=2))
    harness.lease(task(0, ["job.sh"], cwd=str(harness.output)), bags=[bag])
    return harness.result(key(0)).exit_code, (harness.output / "out").read_text()


def test_srun_starts_several_processes_here(harness: Harness) -> None:
    code, output = run_on_two(
        harness,
        "srun -o 'p-%t' bash -c 'echo $SLURM_PROCID of $SLURM_NTASKS; exit $((3 * SLURM_PROCID))'",
        "echo code $?",
        "echo in | srun cat",
        "srun -l bash -c 'echo a; echo b >&2' 2>/dev/null | sort",
        "srun --export=ALL,WORD=a -n1 bash -c 'echo $WORD $SLURM_NTASKS'",
        "exec srun bash -c 'kill -KILL $$'",
    )
    assert (code, output) == (137, "code 3\nin\nin\n0: a\n1: a\na 1\n")
    assert [(harness.output / f"p-{rank}").read_text() for rank in (0, 1)] == ["0 of 2\n", "1 of 2\n"]


def test_steps_behind_an_ampersand_share_the_processors_of_the_element(harness: Harness) -> None:
    """Six steps of one process on two processors: two at a time, as in a job of Slurm."""
    code, output = run_on_two(
        harness,
        "step() { touch in-$1; (set -- in-*; echo $#); sleep 0.3; rm in-$1; }; export -f step",
        'for i in 1 2 3 4 5 6; do srun -n 1 --exclusive bash -c "step $i" & done; wait',
    )
    assert code == 0
    counts = [int(line) for line in output.split()]
    assert len(counts) == 6
    assert max(counts) == 2


def test_processes_of_mpi_are_refused_that_would_not_find_each_other(harness: Harness) -> None:
    (harness.folder / "ranks.py").write_text("from mpi4py import MPI\n")
    code, output = run_on_two(harness, f"srun {sys.executable} {harness.folder}/ranks.py 2>&1")
    assert code == 1
    assert "would not find each other: start it by mpiexec" in output


def test_a_signal_to_srun_reaches_its_processes(harness: Harness) -> None:
    code, output = run_on_two(
        harness,
        "step='trap \"echo got; exit 4\" USR1; touch up-$SLURM_PROCID; while :; do sleep 0.1; done'",
        '(exec srun bash -c "$step") &',
        "until [ -e up-0 ] && [ -e up-1 ]; do sleep 0.1; done; kill -USR1 $!; wait $!",
    )
    assert (code, output) == (4, "got\ngot\n")


def test_an_element_of_grid_engine(harness: Harness) -> None:
    harness.started()
    lines = ("echo $JOB_ID $SGE_TASK_ID $NSLOTS $HOSTNAME",)
    given = script(harness, *lines, dialect="gridengine", array=True, output=f"{harness.output}/o%A.%a")
    harness.lease(element(0, 7, name="SGE_TASK_ID"), bags=[harness.bag(script=given)])
    assert harness.result(key(0)).exit_code == 0
    assert (harness.output / "o1.7").read_text() == "1 7 1 n1\n"


def test_an_element_of_pbs(harness: Harness) -> None:
    harness.started()
    lines = ("echo $PBS_JOBID $PBS_ARRAY_ID $PBS_ARRAY_INDEX $NCPUS; cat $PBS_NODEFILE",)
    given = script(harness, *lines, dialect="pbs", array=True, output=f"{harness.output}/o%A.%a", processes=2)
    harness.lease(element(0, 7, name="PBS_ARRAY_INDEX"), bags=[harness.bag(script=given)])
    assert harness.result(key(0)).exit_code == 0
    assert (harness.output / "o1.7").read_text() == "1[7].adaptor 1[].adaptor 7 1\nn1\nn1\n"
