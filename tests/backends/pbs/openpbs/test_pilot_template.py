"""OpenPBS's batch script: its text, and what it does with stand-ins for pbsdsh and qstat."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.pbs.openpbs.server import OpenPbs
from backends.scripts import render
from tests.backends.orders import script
from tests.living import PATIENCE

Fake = Callable[[str, str], Path]
GOLDEN = Path(__file__).parents[4] / "fixtures" / "openpbs" / "pilot.sh"
"""Written anew by `python -m tests.backends.pbs.openpbs.test_pilot_template`; read the difference."""


def golden_script() -> str:
    command = ["qsub", "-N", "adaptor-x.hpc.7", "--", "/bin/bash", "-l"]
    return script(OpenPbs.template, command, seconds="660", chunk="2", memory=str(2**31), gpus="1")


def test_the_script_is_as_it_was_read_and_found_good() -> None:
    assert golden_script() == GOLDEN.read_text()


class Job:
    """Runs scripts as a job of 6 processors on n1 and n2; pbsdsh runs its program right here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes = "n1\nn1\nn2\nn1\nn2\nn1\n"
        self.chunk = 1
        """Processors of a chunk."""
        self.gpus = 0
        """Of a chunk."""
        self.locks = folder / "locks"

    def start(self, worker: str, prologue: str = "", memory: int | None = None) -> subprocess.Popen[bytes]:
        script = self.folder / "pilot.sh"
        script.write_text(
            render(
                OpenPbs.template,
                processors=6,
                seconds="600",
                command=["qsub"],
                environment={"ADAPTOR_DIRECTORY": str(self.folder), "ADAPTOR_ODD": "a 'b' \"$c\" \\d"},
                prologue=prologue,
                worker=["/bin/bash", "-c", f"exec >>'{self.folder}/said'; {worker}"],
                chunk=str(self.chunk),
                memory="" if memory is None else str(memory),
                gpus=str(self.gpus or ""),
            )
        )
        (self.folder / "nodes").write_text(self.nodes)
        job = {"PBS_JOBID": "9.s", "PBS_NODEFILE": str(self.folder / "nodes"), "TMPDIR": "/tmp"}
        job["PBS_CONF_FILE"] = str(self.folder / "no-pbs.conf")
        job["ADAPTOR_DEVICE_LOCKS"] = str(self.locks)
        return subprocess.Popen(
            ["bash", str(script)], env={"PATH": os.environ["PATH"], **job}, start_new_session=True
        )

    def run(self, worker: str, prologue: str = "", memory: int | None = None) -> int:
        return self.start(worker, prologue, memory).wait(timeout=PATIENCE)

    def said(self) -> list[str]:
        return sorted((self.folder / "said").read_text().splitlines())

    def log(self) -> str:
        return (self.folder / "pbs-script.out").read_text()


@pytest.fixture
def job(tmp_path: Path, fake: Fake) -> Job:
    started = f'echo "$2" >>{tmp_path}/lines; shift 3; exec env -i PATH="$PATH" TMPDIR=/there "$@"'
    fake("pbsdsh", f"{HOOK}{started}")
    fake("qstat", "printf 'Job Id: 9.s\\n    Resource_List.walltime = 00:10:00\\n'")
    return Job(tmp_path)


HOOK = """
words=()
for word; do words+=("${word%%$'\\n'*}"); done
set -- "${words[@]}"
"""
"""What a hook for execjob_launch does to the program that pbsdsh starts: arguments end at a line break."""
SAY = 'echo "$ADAPTOR_NODE $ADAPTOR_PROCESSORS ${ADAPTOR_MEMORY:-none}"'


def test_each_node_gets_its_own_share(job: Job) -> None:
    assert job.run(SAY) == 0
    assert job.said() == ["n1 4 none", "n2 2 none"]
    # pbsdsh is told the number of the node's first line; the first node needs none.
    assert (job.folder / "lines").read_text().split() == ["2"]


def test_memory_is_told_where_it_was_asked_for(job: Job) -> None:
    job.run(SAY, memory=100)
    assert job.said() == ["n1 4 400", "n2 2 200"]


def test_each_node_gets_the_memory_and_the_gpus_of_its_chunks(job: Job) -> None:
    job.chunk, job.gpus = 2, 3
    job.run('echo "$ADAPTOR_NODE $ADAPTOR_MEMORY $ADAPTOR_GPUS"', memory=101)
    assert job.said() == ["n1 202 6", "n2 101 3"]


def test_how_many_gpus_there_are_is_told_only_where_some_were_asked_for(job: Job) -> None:
    job.run('echo "${ADAPTOR_GPUS-none}"')
    assert job.said() == ["none", "none"]


def test_each_node_keeps_the_devices_that_pbs_gives_it(job: Job, fake: Fake) -> None:
    """The hook pbs_cgroups sets CUDA_VISIBLE_DEVICES of each process that it starts."""
    fake("pbsdsh", 'shift 3; exec env -i PATH="$PATH" CUDA_VISIBLE_DEVICES=GPU-b,GPU-c "$@"')
    say = 'echo "$ADAPTOR_NODE ${CUDA_VISIBLE_DEVICES-none} ${CUDA_DEVICE_ORDER-none}"'
    job.run(say, prologue="export CUDA_VISIBLE_DEVICES=GPU-a CUDA_DEVICE_ORDER=PCI_BUS_ID")
    assert job.said() == ["n1 GPU-a PCI_BUS_ID", "n2 GPU-b,GPU-c none"]


GPUS = 'for id in 0 1 2; do echo "GPU $id: NVIDIA A100 (UUID: GPU-$id)"; done'


def test_pilots_on_one_node_take_different_devices_where_pbs_names_none(tmp_path: Path, fake: Fake) -> None:
    fake("nvidia-smi", GPUS)
    fake("qstat", "exit 1")
    jobs = []
    for gpus in (1, 2, 1):
        (tmp_path / str(len(jobs))).mkdir()
        job = Job(tmp_path / str(len(jobs)))
        job.nodes, job.gpus, job.locks = "n1\n", gpus, tmp_path / "locks"
        say = 'echo "${CUDA_VISIBLE_DEVICES-none}"'
        jobs.append((job, job.start(f"{say}; until [ -e '{tmp_path}/end' ]; do sleep 0.05; done")))
        give_up = time.monotonic() + PATIENCE
        while not (job.folder / "said").exists() or not job.said():
            assert time.monotonic() < give_up, job.log()
            time.sleep(0.05)
    assert [job.said() for job, _ in jobs] == [["0"], ["1,2"], ["none"]]
    (tmp_path / "end").touch()
    assert [process.wait(timeout=PATIENCE) for _, process in jobs] == [0, 0, 0]
    assert (tmp_path / "locks").stat().st_mode & 0o077 == 0
    job, _ = jobs[0]
    job.run('echo "again ${CUDA_VISIBLE_DEVICES-none}"')
    assert job.said() == ["0", "again 0"]


def test_a_folder_of_locks_that_is_not_ours_is_not_used(job: Job, fake: Fake) -> None:
    fake("nvidia-smi", GPUS)
    (job.folder / "elsewhere").mkdir()
    job.locks.symlink_to(job.folder / "elsewhere")
    job.nodes, job.gpus = "n1\n", 1
    job.run('echo "${CUDA_VISIBLE_DEVICES-none} $ADAPTOR_GPUS"')
    assert job.said() == ["none 1"]
    assert not list((job.folder / "elsewhere").iterdir())


def test_a_job_on_one_node_needs_no_pbsdsh(job: Job, fake: Fake) -> None:
    fake("pbsdsh", "exit 1")
    job.nodes = "n1\nn1\n"
    assert job.run(SAY) == 0
    assert job.said() == ["n1 2 none"]


def test_values_and_the_prologue_reach_all_workers_as_they_are(job: Job) -> None:
    worker = 'printf "%s|%s|%s\n" "$ADAPTOR_ODD" "$COLOUR" "$TMPDIR"'
    job.run(worker, prologue="export COLOUR='two\nlines'\n")
    assert (job.folder / "said").read_text().count("a 'b' \"$c\" \\d|two\nlines|") == 2
    assert "|/there\n" in (job.folder / "said").read_text()
    before = job.folder / "env.before"
    assert b"COLOUR" not in before.read_bytes()
    for name in ("env.before", "there.sh", "pbs-script.out", "pbs-n2.out"):
        assert (job.folder / name).stat().st_mode & 0o077 == 0


def test_tasks_keep_the_umask_of_the_job(job: Job) -> None:
    job.run("umask")
    here = subprocess.run(["bash", "-c", "umask"], capture_output=True, text=True, check=True).stdout.strip()
    assert job.said() == [here, here]


def test_exported_functions_reach_all_workers(job: Job) -> None:
    job.run("greet", prologue="greet() { echo hello; }\nexport -f greet\n")
    assert job.said() == ["hello", "hello"]


def test_the_end_is_that_of_the_walltime_that_pbs_gave(job: Job, fake: Fake) -> None:
    say = 'echo "$ADAPTOR_PILOT_END"'
    answers = {
        "printf '    Resource_List.walltime = 100:00:08\\n    comment = x\\n'": 360_008,
        "exit 255": 600,
        "echo walltime = soon": 600,
    }
    for answer, walltime in answers.items():
        fake("qstat", answer)
        (job.folder / "said").unlink(missing_ok=True)
        before = time.time()
        job.run(say)
        (end,) = {float(word) for word in job.said()}
        assert before + walltime - 1 <= end <= time.time() + walltime + 1


@pytest.mark.parametrize(
    ("worker", "status"),
    [("exit 0", 0), ("exit 3", 1), ('[ "$ADAPTOR_NODE" = n2 ]', 0), ('[ "$ADAPTOR_NODE" = n1 ]', 0)],
)
def test_a_pilot_fails_only_if_all_its_workers_do(job: Job, worker: str, status: int) -> None:
    assert job.run(worker) == status


def test_a_pilot_that_is_run_again_does_not_count_what_was(job: Job) -> None:
    assert job.run("exit 0") == 0
    assert job.run("exit 1") == 1


def test_a_pilot_whose_other_nodes_cannot_be_reached_fails_and_says_so(job: Job, fake: Fake) -> None:
    fake("pbsdsh", "echo 'pbsdsh: tm_init failed' >&2; exit 1")
    assert job.run("exit 1") == 1
    assert "tm_init failed" in job.log()


def test_a_prologue_that_fails_ends_the_pilot_and_says_where(job: Job) -> None:
    assert job.run("echo worked", prologue="true\nmodule_that_is_missing python\nexport LATE=1") == 1
    assert not (job.folder / "said").exists()
    assert job.log().splitlines()[-1] == (
        "the prologue failed with status 127 at: module_that_is_missing python"
    )


def test_the_script_outlives_its_workers_when_pbs_ends_the_job(job: Job, fake: Fake) -> None:
    """PBS signals every process of the job; pbsdsh leaves at once, the workers take their time."""
    fake("pbsdsh", 'shift 3; trap "exit 1" TERM; "$@" & wait')
    process = job.start(
        '[ "$ADAPTOR_NODE" = n2 ] && late=0.8; '
        'trap "sleep ${late:-0}; echo left; exit 0" TERM; echo up; while :; do sleep 0.05; done'
    )
    give_up = time.monotonic() + PATIENCE
    while not (job.folder / "said").exists() or job.said().count("up") < 2:
        assert time.monotonic() < give_up
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=PATIENCE) == 0
    assert (job.folder / "pilot-end.txt").read_text().split()[:2] == ["0", "yes"]
    assert job.said() == ["left", "left", "up", "up"]


def test_the_script_does_not_wait_for_a_pbsdsh_whose_worker_has_left(job: Job, fake: Fake) -> None:
    """pbsdsh waits for ever where the PBS of its node was killed and started again."""
    fake("pbsdsh", 'shift 3; "$@"; exec sleep 600')
    assert job.run(SAY) == 0
    assert job.said() == ["n1 4 none", "n2 2 none"]


@pytest.mark.parametrize(("worker", "status"), [("exit 0", "0"), ("exit 3", "1")])
def test_the_script_leaves_when_and_how_it_ended(job: Job, worker: str, status: str) -> None:
    before = int(time.time())
    job.run(worker)
    outcome, told, began, ended = (job.folder / "pilot-end.txt").read_text().split()
    assert before <= int(began) <= int(ended) <= time.time()
    assert (outcome, told) == (status, "no")


def test_a_prologue_that_fails_is_an_end_too_and_one_of_before_is_forgotten(job: Job) -> None:
    job.run("exit 0")
    job.run("exit 0", prologue="false\n")
    assert (job.folder / "pilot-end.txt").read_text().split()[:2] == ["1", "no"]


if __name__ == "__main__":
    GOLDEN.write_text(golden_script())
