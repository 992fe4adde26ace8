"""Torque's batch script: its text, and what it does with a stand-in for pbsdsh."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adaptor_torque.dialect import TOLD, Torque
from backends.scripts import render
from tests.backends.orders import script
from tests.living import PATIENCE, run_text

Fake = Callable[[str, str], Path]
GOLDEN = Path(__file__).parents[2] / "fixtures" / "torque" / "pilot.sh"
"""Written anew by `python -m tests.torque.test_pilot_template`; read the difference."""
PBSDSH = """
[[ $1 == -u ]] || exit 9
shift
for word; do [[ $word != *$'\\n'* ]] || exit 8; done # an execution hook would cut it there
started=()
trap 'told=yes; kill -TERM "${started[@]/#/-}"' TERM
for node in $(sort -u "$PBS_NODEFILE"); do
    first=$(($(grep -nxm1 "$node" "$PBS_NODEFILE" | cut -d: -f1) - 1))
    env -i PATH="$PATH" PBS_VNODENUM="$first" setsid "$@" &
    started+=("$!")
done
[[ $told ]] && kill -TERM "${started[@]/#/-}" # it may have come before the last was in the list
for one in "${started[@]}"; do while kill -0 "$one" 2>/dev/null; do wait "$one"; done; done
exit 0
"""
"""Starts its program once on each node, in an environment of its own, and never says how that ended."""
SAY = 'echo "$ADAPTOR_NODE $ADAPTOR_PROCESSORS ${ADAPTOR_MEMORY:-none}"'


def golden_script() -> str:
    command = ["qsub", "-N", "adaptor.7"]
    return script(Torque.template, command, seconds="660", chunk="2", memory=str(2**31), gpus="1")


def test_the_script_is_as_it_was_read_and_found_good() -> None:
    assert golden_script() == GOLDEN.read_text()


class Job:
    """A job of Torque with 4 processors of n1 and 2 of n2, unless told otherwise."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pilot's own"
        self.folder.mkdir()
        self.nodes = "n1 n1 n1 n1 n2 n2"
        self.chunk = 1
        """Processors of a chunk."""
        self.gpus = 0
        """Of a chunk."""
        self.status: int | None = None
        """Of the script that `run` waited for."""

    def start(
        self, worker: str, prologue: str = "", memory: int | None = None, **variables: str
    ) -> subprocess.Popen[bytes]:
        script = self.folder / "pilot.sh"
        script.write_text(
            render(
                Torque.template,
                processors=6,
                seconds="600",
                command=["qsub"],
                environment={"ADAPTOR_DIRECTORY": str(self.folder), "ADAPTOR_ODD": "a 'b'\n\"$c\" \\d"},
                prologue=prologue,
                worker=["/bin/bash", "-c", f"exec >>said 2>>errors; {worker}"],
                chunk=str(self.chunk),
                memory="" if memory is None else str(memory),
                gpus=str(self.gpus or ""),
            )
        )
        file = self.folder.parent / "nodefile"
        file.write_text("".join(f"{node}\n" for node in self.nodes.split()))
        own = {"PATH": os.environ["PATH"], "PBS_NODEFILE": str(file), "PBS_JOBID": "9.head"}
        return subprocess.Popen(
            ["bash", str(script)], env={**own, **variables}, start_new_session=True, cwd=self.folder.parent
        )

    def run(self, worker: str, prologue: str = "", memory: int | None = None, **variables: str) -> list[str]:
        """What the workers said, sorted."""
        self.status = self.start(worker, prologue, memory, **variables).wait(30)
        return sorted(self.said())

    def said(self) -> list[str]:
        path = self.folder / "said"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def job(tmp_path: Path, fake: Fake) -> Job:
    fake("pbsdsh", PBSDSH)
    return Job(tmp_path)


@pytest.mark.parametrize("nodes", ["n1 n1 n1 n1 n2 n2", "n1 n2 n1 n2 n1 n1"])
def test_each_node_gets_its_own_share(job: Job, nodes: str) -> None:
    job.nodes = nodes
    assert job.run(SAY) == ["n1 4 none", "n2 2 none"]
    assert job.status == 0


def test_one_node_needs_no_pbsdsh(job: Job, fake: Fake) -> None:
    fake("pbsdsh", "exit 9")
    job.nodes = "n7 n7 n7"
    assert job.run(SAY) == ["n7 3 none"]


def test_memory_is_told_by_the_processors_of_the_node(job: Job) -> None:
    assert job.run(SAY, memory=2**20) == [f"n1 4 {4 * 2**20}", f"n2 2 {2 * 2**20}"]


def test_each_node_gets_the_memory_and_the_gpus_of_its_chunks(job: Job) -> None:
    job.chunk, job.gpus = 2, 1
    said = job.run('echo "$ADAPTOR_NODE $ADAPTOR_MEMORY $ADAPTOR_GPUS"', memory=101)
    assert said == ["n1 202 2", "n2 101 1"]


def test_all_nodes_read_which_gpus_are_theirs(job: Job) -> None:
    """Torque gives the file to the first node alone; the ids of its devices mean others elsewhere."""
    file = job.folder.parent / "gpufile"
    file.write_text("n1-gpu1\nn2-gpu0\n")
    said = job.run(
        'echo "$ADAPTOR_NODE ${CUDA_VISIBLE_DEVICES-none}" $(cat "$PBS_GPUFILE")',
        PBS_GPUFILE=str(file),
        CUDA_VISIBLE_DEVICES="1",
    )
    assert said == ["n1 none n1-gpu1 n2-gpu0", "n2 none n1-gpu1 n2-gpu0"]


def test_values_and_the_prologue_reach_every_worker(job: Job) -> None:
    prologue = "export COLOUR=$'light\\n\"blue\"'\nhello() { echo hi; }\nexport -f hello\n"
    said = job.run('echo "$ADAPTOR_ODD"; echo "$COLOUR"; hello', prologue=prologue)
    assert said == sorted(2 * ["a 'b'", '"$c" \\d', "light", '"blue"', "hi"])
    assert (job.folder / "environment.sh").stat().st_mode & 0o077 == 0


def test_the_end_is_torques_word_or_ours(job: Job) -> None:
    before = int(time.time())
    ends = job.run('echo "$ADAPTOR_PILOT_END"') + job.run('echo "$ADAPTOR_PILOT_END"', PBS_WALLTIME="100")
    assert all(before + 600 <= int(end) <= time.time() + 600 for end in ends[:2])
    assert before + 100 <= int(ends[2]) <= time.time() + 100


@pytest.mark.parametrize("nodes", ["n1 n2", "n1 n1"])
@pytest.mark.parametrize(
    ("worker", "status"),
    [("exit 0", 0), ("exit 3", 1), ('[ "$ADAPTOR_NODE" != n2 ]', 0)],
)
def test_a_pilot_fails_only_if_all_its_workers_do(job: Job, nodes: str, worker: str, status: int) -> None:
    job.nodes = nodes
    assert job.start(worker).wait(30) == status


@pytest.mark.parametrize("nodes", ["n1 n2", "n1 n1"])
def test_a_job_that_is_told_to_end_outlives_its_workers(job: Job, nodes: str) -> None:
    job.nodes = nodes
    process = job.start("trap 'sleep 0.5; echo left; exit 0' TERM; echo up; sleep 60 & wait")
    expected = len(set(nodes.split()))
    deadline = time.monotonic() + PATIENCE
    while len(job.said()) < expected:
        assert time.monotonic() < deadline, job.said()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)  # as pbs_mom does: to all processes of the session
    assert process.wait(30) == TOLD
    assert job.said().count("left") == expected


def test_a_prologue_that_fails_ends_the_pilot(job: Job) -> None:
    assert job.start("echo worked", prologue="true\nno_such_module python\n").wait(30) == 1
    assert job.said() == []


def test_a_job_without_nodes_or_folder_says_so(job: Job) -> None:
    job.nodes = ""
    assert job.start("echo worked").wait(30) == 1
    job.folder.rename(job.folder.with_name("elsewhere"))
    lost = run_text(
        ["bash", str(job.folder.with_name("elsewhere") / "pilot.sh")],
        env={"PATH": os.environ["PATH"]},
        timeout=PATIENCE,
    )
    assert lost.returncode == 1
    assert "No such file or directory" in lost.stderr


if __name__ == "__main__":
    GOLDEN.write_text(golden_script())
