"""The batch script: its text, and what it does with stand-ins for srun and scontrol."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.scripts import render
from backends.slurm.backend import TEMPLATE
from tests.backends.orders import script
from tests.living import PATIENCE, run_text

Fake = Callable[[str, str], Path]
GOLDEN = Path(__file__).parents[3] / "fixtures" / "slurm" / "pilot.sh"
"""Written anew by `python -m tests.backends.slurm.test_pilot_template`; read the difference."""


def golden_script() -> str:
    command = ["sbatch", "--parsable", "--job-name=adaptor-x-7"]
    return script(TEMPLATE, command, minutes="11", shrinks="false", shares="1", log=":", gres="gpu:a100: 0 1")


def test_the_script_is_as_it_was_read_and_found_good() -> None:
    assert golden_script() == GOLDEN.read_text()


@pytest.fixture
def run(tmp_path: Path, fake: Fake) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script as a job of 6 processors on n1 and n2; srun runs the worker right here."""
    fake("scontrol", "printf 'n1\\nn2\\n'")
    fake(
        "srun",
        f'printf "%s\\n" "$*" >>{tmp_path}/steps; env >>{tmp_path}/variables; tasks=$2; '
        "while [[ $1 == --* ]]; do shift; done; "
        "export SLURM_CPUS_ON_NODE=$ADAPTOR_PROCESSORS; "
        'for ((rank = ${tasks#*=}; rank-- > 0;)); do SLURM_PROCID=$rank "$@" || exit; done',
    )
    fake("squeue", "echo 2000000000")

    def run(
        worker: str,
        prologue: str = "",
        gres: str = "",
        shrinks: str = "false",
        shares: str = "1",
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "pilot.sh"
        script.write_text(
            render(
                TEMPLATE,
                processors=6,
                minutes="10",
                shrinks=shrinks,
                command=["sbatch"],
                environment={"ADAPTOR_DIRECTORY": str(tmp_path), "ADAPTOR_ODD": "a 'b' \"$c\" \\d"},
                prologue=prologue,
                worker=["/bin/sh", "-c", worker],
                gres=gres,
                shares=shares,
                log=":",
            )
        )
        job = {"SLURM_JOB_ID": "9", "SLURM_JOB_CPUS_PER_NODE": "4,2", "SLURM_JOB_NODELIST": "n[1-2]"}
        return run_text(
            ["bash", str(script)],
            env={"PATH": os.environ["PATH"], "SLURM_TASKS_PER_NODE": "2,1", **job, **variables},
            timeout=PATIENCE,
        )

    return run


SAY = 'echo "$ADAPTOR_NODE $ADAPTOR_PROCESSORS ${ADAPTOR_MEMORY:-none}"'
Run = Callable[..., subprocess.CompletedProcess[str]]


def test_each_node_gets_its_own_share(run: Run) -> None:
    assert sorted(run(SAY).stdout.splitlines()) == ["n1 4 none", "n2 2 none"]
    shares = run(SAY, SLURM_JOB_CPUS_PER_NODE="3(x2)").stdout
    assert sorted(shares.splitlines()) == ["n1 3 none", "n2 3 none"]


def test_memory_by_processor_and_by_node(run: Run) -> None:
    by_processor = run(SAY, SLURM_MEM_PER_CPU="100").stdout
    assert sorted(by_processor.splitlines()) == [f"n1 4 {400 * 2**20}", f"n2 2 {200 * 2**20}"]
    by_node = run(SAY, SLURM_MEM_PER_NODE="100").stdout
    assert sorted(by_node.splitlines()) == [f"n1 4 {100 * 2**20}", f"n2 2 {100 * 2**20}"]
    whole = run(SAY, SLURM_MEM_PER_NODE="0").stdout
    assert sorted(whole.splitlines()) == ["n1 4 none", "n2 2 none"]


def steps(folder: Path) -> dict[str, str]:
    """By node: the options of its step."""
    lines = (folder / "steps").read_text().splitlines()
    return {line.split("--nodelist=")[1].split()[0]: line for line in lines if "--nodelist=" in line}


@pytest.mark.parametrize(
    ("gres", "n1", "n2"),
    [
        ("", "--ntasks=1", "--ntasks=1"),
        ("gpu: 0 1", "--ntasks=2", "--ntasks=1"),
        ("gpu:a100: 0 2", "--ntasks=2", "--ntasks=1"),
        ("gpu:1g.5gb: 0 1", "--ntasks=2", "--ntasks=1"),
        ("gpu: 4 0", "--ntasks=1 --gres=gpu:4", "--ntasks=1 --gres=gpu:4"),
        ("gpu: 0 1 lustre: 1 0", "--ntasks=2", "--ntasks=1"),
        ("shard: 4 0", "--ntasks=1 --gres=shard:4", "--ntasks=1 --gres=shard:4"),
    ],
)
def test_a_step_has_the_tasks_or_names_the_devices_of_its_node(
    run: Run, tmp_path: Path, gres: str, n1: str, n2: str
) -> None:
    """Else Slurm gives the step the GPUs of one task."""
    assert sorted(run('echo "$ADAPTOR_NODE"', gres=gres).stdout.splitlines()) == ["n1", "n2"], (
        "one worker each"
    )
    for node, wanted in (("n1", n1), ("n2", n2)):
        words = steps(tmp_path)[node].split()
        assert " ".join(word for word in words if re.match("--(ntasks|gres)=", word)) == wanted
        assert {"--nodes=1", "--whole", "--overlap", "--mem=0", "--cpu-bind=none", "--wait=0"} <= set(words)


def test_without_slurms_word_on_the_tasks_of_a_node_its_step_has_one(run: Run, tmp_path: Path) -> None:
    run("true", gres="gpu: 0 1", SLURM_TASKS_PER_NODE="")
    assert {line.split()[1] for line in steps(tmp_path).values()} == {"--ntasks=1"}


def test_workers_know_how_many_gpus_to_expect(run: Run) -> None:
    said = run('echo "$ADAPTOR_NODE ${ADAPTOR_GPUS:-none}"', gres="gpu:a100: 0 1 gpu: 0 1 lustre: 1 0").stdout
    assert sorted(said.splitlines()) == ["n1 4", "n2 2"]
    said = run('echo "$ADAPTOR_NODE ${ADAPTOR_GPUS:-none}"', gres="shard: 4 0").stdout
    assert sorted(said.splitlines()) == ["n1 none", "n2 none"]


def test_workers_are_told_what_slurm_says_of_their_step(run: Run) -> None:
    said = run('echo "$ADAPTOR_NODE $ADAPTOR_STEP_PROCESSORS"').stdout
    assert sorted(said.splitlines()) == ["n1 4", "n2 2"]


def test_srun_finds_no_option_in_a_variable(run: Run, tmp_path: Path) -> None:
    """Of what sbatch sets, and of what a later release may set."""
    names = [
        "CPUS_PER_TASK",
        "TRES_PER_TASK",
        "TRES_BIND",
        "GPUS_PER_TASK",
        "MEM_PER_CPU",
        "NTASKS",
        "NPROCS",
    ]
    names += ["JOB_GPUS", "JOB_CPUS_PER_NODE", "TASKS_PER_NODE", "OF_NEXT_YEAR", "JOB_OF_NEXT_YEAR"]
    options = {f"SLURM_{name}": "1" for name in names}
    options |= {
        "SRUN_CPUS_PER_TASK": "1",
        "SBATCH_GRES": "gpu",
        "SLURMD_DEBUG": "1",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    reach = {
        "SLURM_CONF": "/etc/slurm.conf",
        "SLURM_WORKING_CLUSTER": "a:b:1:2",
        "SLURM_JOB_PARTITION": "batch",
    }
    run("true", **options, **reach)
    found = {line.partition("=")[0] for line in (tmp_path / "variables").read_text().splitlines()}
    assert not found & options.keys()
    assert reach.keys() | {"SLURM_JOB_ID"} <= found


def test_values_reach_the_worker_as_they_are(run: Run) -> None:
    assert run('printf "%s\n" "$ADAPTOR_ODD"').stdout.splitlines()[0] == "a 'b' \"$c\" \\d"


def test_the_end_is_slurms_own_word_or_is_asked_for_or_reckoned(run: Run, fake: Fake) -> None:
    say = 'echo "$ADAPTOR_PILOT_END"'
    assert set(run(say, SLURM_JOB_END_TIME="1900000000").stdout.split()) == {"1900000000"}
    assert set(run(say).stdout.split()) == {"2000000000"}
    for answer in ("echo NONE", "exit 1", "echo slurm_load_jobs error"):
        fake("squeue", answer)
        before = time.time()
        (end,) = {float(word) for word in run(say).stdout.split()}
        assert before + 599 <= end <= time.time() + 601


def test_an_end_before_the_limit_is_asked_for_again(run: Run, fake: Fake) -> None:
    """With --time-min, Slurm 26.05 says start + time-min, whatever limit the job got."""
    say = 'echo "$ADAPTOR_PILOT_END"'
    early = str(int(time.time()) + 120)
    assert set(run(say, SLURM_JOB_END_TIME=early).stdout.split()) == {"2000000000"}
    fake("squeue", "exit 1")
    assert set(run(say, SLURM_JOB_END_TIME=early).stdout.split()) == {early}


def test_where_slurm_gives_less_the_end_is_always_asked_for(run: Run) -> None:
    """The least time may be longer than what was asked for when the script was written."""
    said = run('echo "$ADAPTOR_PILOT_END"', shrinks="true", SLURM_JOB_END_TIME=str(int(time.time()) + 900))
    assert set(said.stdout.split()) == {"2000000000"}


@pytest.mark.parametrize(
    ("worker", "status"),
    [("exit 0", 0), ("exit 3", 1), ('[ "$ADAPTOR_NODE" = n2 ]', 0), ('[ "$ADAPTOR_NODE" = n1 ]', 0)],
)
def test_a_pilot_fails_only_if_all_its_workers_do(run: Run, worker: str, status: int) -> None:
    assert run(worker).returncode == status


def test_a_prologue_is_run_and_what_was_before_is_kept(run: Run, tmp_path: Path) -> None:
    done = run('echo "$COLOUR $ADAPTOR_ENV_BEFORE"', prologue="export COLOUR=blue\n")
    before = tmp_path / "env.before"
    assert done.stdout.splitlines()[0] == f"blue {before}"
    assert b"COLOUR" not in before.read_bytes()
    assert before.stat().st_mode & 0o077 == 0


def test_a_prologue_that_fails_ends_the_pilot_and_says_where(run: Run, tmp_path: Path) -> None:
    done = run("echo worked", prologue="true\nmodule_that_is_missing python\nexport LATE=1")
    assert done.returncode == 1
    assert "worked" not in done.stdout
    assert done.stderr.splitlines()[-1] == (
        "the prologue failed with status 127 at: module_that_is_missing python"
    )


def test_memory_that_slurm_counts_by_thread_is_that_of_all_threads(run: Run) -> None:
    said = run(SAY, shares="2", SLURM_MEM_PER_CPU="100").stdout
    assert sorted(said.splitlines()) == [f"n1 4 {4 * 200 * 2**20}", f"n2 2 {2 * 200 * 2**20}"]


if __name__ == "__main__":
    GOLDEN.write_text(golden_script())
