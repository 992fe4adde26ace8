"""Slurm's commands in front of bags, beside a scheduler that is a few lines of shell."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.shims.serving import leave_behind
from adaptor.shims.start import socket_name
from tests.e2e.lab import Lab
from tests.living import run_text, until

AT_ONCE = int(os.environ.get("AT_ONCE", "40"))
REAL = """#!/bin/sh
echo "$(basename $0) $@" >> {log}
case $(basename $0) in
sbatch) cat > {stdin} < /dev/stdin; echo Submitted batch job 7;;
squeue) echo JOBID; echo 7;;
esac
"""


class Shell:
    """A user's shell with the shims first in PATH, then the commands of a scheduler."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.log = lab.root / "real.log"
        self.log.touch()
        lab.configure("sites: {here: {backend: local, processors: 2, initial_tr: 5m, idle_timeout: 1s}}")
        lab.run("shims", lab.root / "bin", "--always")
        real = lab.root / "real"
        real.mkdir()
        for name in ("sbatch", "squeue", "scancel", "sacct", "scontrol"):
            text = REAL.format(log=self.log, stdin=lab.root / "stdin")
            (real / name).write_text(text)
            (real / name).chmod(0o755)
        path = f"{lab.root / 'bin'}:{real}:{os.environ['PATH']}"
        self.environment = {**lab.environment, "PATH": path, "ADAPTOR_CONFIG": str(lab.config)}

    def run(
        self, *words: str, expect: int = 0, input: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        done = run_text(words, cwd=self.lab.work, env={**self.environment, **variables}, input=input)
        assert done.returncode == expect, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def submit(self, *words: str, **variables: str) -> str:
        return self.run("sbatch", "--parsable", "--time=5", *words, **variables).stdout.strip()  # type: ignore[arg-type]

    def states(self, *jobs: str) -> list[str]:
        said = self.run("sacct", "-n", "-P", "-o", "JobID,State", "-j", ",".join(jobs)).stdout
        return said.split()

    def ended(self, *jobs: str) -> list[str]:
        """Their states, once all have ended."""

        def found() -> list[str] | None:
            states = self.states(*jobs)
            return None if any(state.endswith("ING") for state in states) else states

        return list(until(found, "the jobs end"))

    def file(self, name: str) -> str:
        return (self.lab.work / name).read_text()

    def given_on(self) -> list[str]:
        """The calls of the scheduler's own commands."""
        return self.log.read_text().splitlines()


@pytest.fixture
def shell(lab: Lab) -> Iterator[Shell]:
    """With a daemon, and with a process that answers for the commands, as after the first of them."""
    shell = Shell(lab)
    lab.run("daemon", "start")
    process = leave_behind(str(lab.root / "bin"))
    assert process is not None
    until((lab.root / "bin" / socket_name()).exists, "the process listens")
    yield shell
    process.kill()
    process.wait()


def test_small_jobs_run_in_a_bag(shell: Shell) -> None:
    script = shell.lab.work / "job.sh"
    script.write_text(
        '#!/bin/sh\n#SBATCH -J sim -o %x-%j.txt\necho $SLURM_JOB_ID $SLURM_JOB_NAME $COLOUR "$@"; exit $1\n'
    )
    first = shell.submit("job.sh", "0", "a b")
    second = shell.submit("job.sh", "3", COLOUR="red")
    third = shell.submit("-o", "wrapped.txt", "--wrap", 'echo "$0"; basename "$SHELL"')
    assert shell.ended(first, second, third) == [
        f"{first}|COMPLETED",
        f"{second}|FAILED",
        f"{third}|COMPLETED",
    ]
    assert shell.file(f"sim-{first}.txt") == f"{first} sim 0 a b\n"
    assert shell.file(f"sim-{second}.txt") == f"{second} sim red 3\n"
    assert "slurm_script" in shell.file("wrapped.txt")
    assert {job[:-8] for job in (first, second, third)} == {first[:-8]}, "one bag"
    assert (
        shell.run("sacct", "-nPX", "-j", second, "-o", "exitcode,jobname,timelimit").stdout
        == "3:0|sim|00:05:00\n"
    )
    assert "JobState=FAILED" in shell.run("scontrol", "show", "job", second).stdout
    assert shell.given_on() == [], "the scheduler was not asked"


def test_arrays_and_jobs_that_wait_for_others(shell: Shell) -> None:
    gate = shell.lab.hold()
    first = shell.submit("-o", "/dev/null", "--wrap", gate)
    array = shell.submit(
        "--array=2-6:2",
        "-d",
        f"afterok:{first}",
        "-o",
        "%A-%a",
        "--wrap",
        "exit $((SLURM_ARRAY_TASK_ID == 4))",
    )
    last = shell.submit("-t", "3", "-d", f"afterany:{array}", "-o", "last", "--wrap", "ls -1 *-*")
    never = shell.submit("-d", f"afterok:{array}", "-o", "never", "--wrap", "touch ran")
    alone = [
        shell.submit("-J", "one", "-d", "singleton", "-o", "/dev/null", "--wrap", "true") for _ in range(2)
    ]
    assert shell.states(array, last) == [f"{array}_{index}|PENDING" for index in (2, 4, 6)] + [
        f"{last}|PENDING"
    ]
    assert (
        shell.run("squeue", "-h", "-j", f"{array}_4", "-o", "%i %K %r").stdout == f"{array}_4 4 Dependency\n"
    )
    shell.lab.release()
    ends = [f"{array}_2|COMPLETED", f"{array}_4|FAILED", f"{array}_6|COMPLETED"]
    done = [f"{job}|COMPLETED" for job in (first, last, *alone)]
    assert sorted(shell.ended(first, array, last, never, *alone)) == sorted(
        [*done, *ends, f"{never}|CANCELLED"]
    )
    assert shell.file("last").split() == [f"{array}-{index}" for index in (2, 4, 6)]
    refused = shell.run("sbatch", "-t", "5", "-d", f"afterok:{array}", "--wrap", "true", expect=1)
    assert "is FAILED" in refused.stderr
    assert "Job dependency problem" in refused.stderr
    refused = shell.run("sbatch", "-t", "5:00:00", "-d", f"afterok:{first}", "--wrap", "true", expect=1)
    assert "the scheduler does not know the jobs" in refused.stderr


def test_all_else_goes_to_the_scheduler(shell: Shell) -> None:
    large = shell.run("sbatch", "--time=5:00:00", "-N2", "--wrap", "true")
    assert large.stdout == "Submitted batch job 7\n"
    assert large.stderr == "adaptor: to the scheduler: --time is 5h, small jobs have up to 1h\n"
    text = "#!/bin/sh\n#SBATCH -t 5 --exclusive\nhostname\n"
    piped = shell.run("sbatch", "-J", "x", input=text)
    assert "--exclusive: tasks share nodes" in piped.stderr
    assert (shell.lab.root / "stdin").read_text() == text, "standard input is passed on"
    unknown = shell.run("sbatch", "-t", "5", input="#!/bin/sh\n#SBATCH --no-such-option=3\n")
    assert "to the scheduler: " in unknown.stderr
    assert "--no-such-option" in unknown.stderr
    mixed = shell.run("squeue", "-h")
    assert mixed.stdout == "JOBID\n7\n"
    shell.run("scancel", "7")
    shell.run("scontrol", "update", "job", "7")
    shell.run("sacct", "-j", "7", "--no-such-option")
    assert shell.given_on() == [
        "sbatch --time=5:00:00 -N2 --wrap true",
        "sbatch -J x",
        "sbatch -t 5",
        "squeue --noheader",
        "scancel 7",
        "scontrol update job 7",
        "sacct -j 7 --no-such-option",
    ]


@pytest.mark.parametrize(("kind", "code"), [("accounting_storage/none", 0), ("(null)", 0), ("slurmdbd", 1)])
def test_sacct_answers_for_tasks_where_the_scheduler_has_no_accounting(
    shell: Shell, kind: str, code: int
) -> None:
    job = shell.submit("-o", "/dev/null", "--wrap", "true")
    answers = {"sacct": "echo failed >&2; exit 1", "scontrol": f"echo 'AccountingStorageType   = {kind}'"}
    for name, answer in answers.items():
        (shell.lab.root / "real" / name).write_text(f"#!/bin/sh\n{answer}\n")
    shell.ended(job)
    done = shell.run("sacct", "-n", "-P", "-o", "JobID,State", expect=code)
    assert done.stdout == f"{job}|COMPLETED\n"
    assert ("accounting is off: sacct shows tasks of bags alone" in done.stderr) is (code == 0)
    shell.run("sacct", "-n", "-j", f"7,{job}", expect=1)


def test_a_job_of_the_scheduler_has_the_shims_in_its_path(shell: Shell) -> None:
    """As its user's shell has them: a job that submits jobs does it through the adaptor, too."""
    sbatch = shell.lab.root / "real" / "sbatch"
    job = 'echo "$PATH" > path; sbatch --parsable --time=5 -o /dev/null --wrap true > inner 2> told'
    # A real job is no child of the command that submits it.
    runs = f"cd {shell.lab.work}\nunset ADAPTOR_SHIM_PASSED\nSLURM_JOB_ID=7 sh -c '{job}'"
    sbatch.write_text(f"#!/bin/sh\n[ $1 = --time=5:00:00 ] || {{ echo 8; exit; }}\n{runs}\n")
    shell.run("sbatch", "--time=5:00:00", "--wrap", "true")
    assert shell.file("path").strip() == shell.environment["PATH"]
    inner = shell.file("inner").strip()
    assert shell.ended(inner) == [f"{inner}|COMPLETED"]
    shell.lab.run("daemon", "stop")
    shell.run("sbatch", "--time=5:00:00", "--wrap", "true")
    assert shell.file("inner") == "8\n", "a daemon would end with the job that starts it"
    assert "no daemon runs, and a job starts none" in shell.file("told")


def test_a_wrapper_in_front_of_the_scheduler_asks_the_scheduler(shell: Shell) -> None:
    """It has the PATH of the jobs, with the shims, and means the commands behind it."""
    site = shell.lab.root / "site"
    site.mkdir()
    (site / "sbatch").write_text('#!/bin/sh\nsqueue -u nobody > /dev/null\nsbatch "$@"\n')
    (site / "sbatch").chmod(0o755)
    first, _, rest = shell.environment["PATH"].partition(":")
    shell.environment["PATH"] = f"{first}:{site}:{rest}"
    assert shell.run("sbatch", "--time=5:00:00", "--wrap", "true").stdout == "Submitted batch job 7\n"
    assert shell.given_on() == ["squeue -u nobody", "sbatch --time=5:00:00 --wrap true"]


def test_jobs_are_cancelled_by_number_and_by_name(shell: Shell) -> None:
    jobs = [shell.submit("-J", name, "-o", "/dev/null", "--wrap", "sleep 300") for name in ("a", "b", "c")]
    until(lambda: "RUNNING" in shell.states(jobs[0])[0], "a job runs")
    shell.run("scancel", jobs[0], "7")
    shell.run("scancel", "-n", "b")
    assert shell.given_on() == ["scancel 7", "scancel --jobname=b"]
    assert shell.ended(*jobs[:2]) == [f"{job}|CANCELLED" for job in jobs[:2]]
    told = json.loads(shell.run("squeue", "--json", "-j", jobs[2]).stdout)
    assert [job["job_id"] for job in told["jobs"]] == [int(jobs[2])]
    refused = shell.run("scancel", "-s", "USR1", jobs[2], expect=1)
    assert "no signals" in refused.stderr
    refused = shell.run("scontrol", "hold", jobs[2], expect=1)
    assert "is a task of a bag" in refused.stderr
    shell.run("scancel", "-u", "somebody")
    assert shell.states(jobs[2]) == [f"{jobs[2]}|RUNNING"]
    shell.run("scancel", "-u", getpass.getuser())
    assert shell.given_on()[-1] == f"scancel --user={getpass.getuser()}"
    assert shell.ended(jobs[2]) == [f"{jobs[2]}|CANCELLED"]
    last = shell.submit("-o", "/dev/null", "--wrap", "sleep 300")
    shell.run("scancel", "--me")
    assert shell.ended(last) == [f"{last}|CANCELLED"]
    missing = shell.run("squeue", "-j", "1275068416", expect=1)
    assert "Invalid job id specified" in missing.stderr


def test_many_at_once(shell: Shell) -> None:
    """All get numbers of their own, in one bag."""
    words = "sbatch --parsable -t 5 -o /dev/null --wrap true"
    said = shell.run("sh", "-c", f"seq {AT_ONCE} | xargs -P 25 -I @ {words}").stdout.split()
    assert len(set(said)) == AT_ONCE
    assert len({job[:-8] for job in said}) == 1
    assert shell.ended(*said) == [f"{job}|COMPLETED" for job in sorted(said, key=said.index)]


def test_a_connection_made_ahead_may_be_lost(shell: Shell) -> None:
    """With its daemon, which has another one after it."""
    jobs = [shell.submit("-o", "/dev/null", "--wrap", "true") for _ in range(2)]
    shell.lab.run("daemon", "stop")
    shell.lab.run("daemon", "start")
    jobs.append(shell.submit("-o", "/dev/null", "--wrap", "true"))
    assert shell.ended(*jobs) == [f"{job}|COMPLETED" for job in jobs]


def test_sbatch_may_wait(shell: Shell) -> None:
    done = shell.run("sbatch", "-W", "-t", "5", "-o", "/dev/null", "--wrap", "exit 4", expect=4)
    assert done.stdout.startswith("Submitted batch job ")


def test_callers_name_their_bags(shell: Shell) -> None:
    mine, other = (
        shell.submit("-o", "/dev/null", "--wrap", "true", ADAPTOR_SHIM_BAG=name) for name in ("mine", "other")
    )
    assert mine[:-8] != other[:-8]
    assert {bag["name"] for bag in shell.lab.ask("status")["bags"]} == {"mine", "other"}


def test_the_daemon_is_started_where_none_runs(lab: Lab) -> None:
    shell = Shell(lab)
    assert shell.run("squeue", "-h").stdout == "JOBID\n7\n"
    job = shell.submit("-o", "/dev/null", "--wrap", "sbatch -t 5 --wrap true")
    assert shell.ended(job) == [f"{job}|COMPLETED"]
    assert shell.given_on()[1:] == ["sbatch -t 5 --wrap true"], "inside a task the real command runs"
    lab.run("daemon", "stop")
    assert shell.states(job) == [f"{job}|COMPLETED"], "the journal is read"
    waiting = shell.submit("-d", f"afterany:{job}", "-o", "/dev/null", "--wrap", "sleep 300")
    lab.run("daemon", "stop")
    refused = shell.run("scancel", waiting, expect=1)
    assert "no daemon runs that could cancel jobs: adaptor daemon start" in refused.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be two users")
def test_two_users_have_bags_of_their_own(tmp_path: Path) -> None:
    """The same numbers, on the same machine, at the same time."""
    people = [Person(tmp_path / name, name, number) for name, number in (("ada", 65533), ("bob", 65534))]
    ada, bob = people
    try:
        jobs = {person.submit("-o", "out", "--wrap", "id -u; sleep 300") for person in people}
        (job,) = jobs
        for person in people:
            until((person.work / "out").exists, "the job runs")
            assert (person.work / "out").stat().st_uid == person.number
        ada.run("scancel", job)
        until(lambda: ada.state(job) == "CANCELLED", "the job has ended")
        assert bob.state(job) == "RUNNING"
    finally:
        for person in people:
            person.run(*person.adaptor, "daemon", "stop", "--pilots")
            shutil.rmtree(person.shims)  # the process behind them ends


class Person:
    """A user with a folder, a daemon and shims of their own, who may read what Python root has."""

    def __init__(self, root: Path, name: str, number: int) -> None:
        self.number, self.work, self.shims = number, root / "work", root / "bin"
        may_read = (f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient"))
        self.become = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", *may_read]
        self.adaptor = [sys.executable, "-m", "adaptor.cli"]
        config = root / "site.yaml"
        for folder in (root, self.work):
            folder.mkdir(mode=0o700)
            os.chown(folder, number, number)
        config.write_text("sites: {here: {backend: local, processors: 1, initial_tr: 5m}}")
        self.environment = {
            "PATH": f"{self.shims}:/usr/bin:/bin", "HOME": str(root), "USER": name, "LOGNAME": name,
            "ADAPTOR_DIR": str(root / "state"), "ADAPTOR_CONFIG": str(config),
        }  # fmt: skip
        self.run(*self.adaptor, "shims", str(self.shims))

    def run(self, *words: str) -> str:
        done = run_text([*self.become, *words], cwd=self.work, env=self.environment)
        assert not done.returncode, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def submit(self, *words: str) -> str:
        return self.run("sbatch", "--parsable", "--time=5", *words).strip()

    def state(self, job: str) -> str:
        return self.run("sacct", "-n", "-P", "-o", "State", "-j", job).strip()
