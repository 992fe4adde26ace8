"""`adaptor site check --live` on a real Slurm and on this machine: what a node tells, and the way out."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.clusters.narrow_srun import narrow_srun
from tests.clusters.sshd import ThrowawaySshd
from tests.clusters.throwaway import Throwaway
from tests.e2e.lab import LONG, Lab, site
from tests.living import run_text, until


@pytest.fixture
def lab(tmp_path: Path):  # type: ignore[no-untyped-def]
    lab = Lab(tmp_path)
    yield lab
    lab.close()


def found(lab: Lab, *arguments: str, expect: int = 0) -> list[tuple[str, str]]:
    """The levels and texts that the check of a site prints."""
    told = lab.run("site", "check", "here", "--live", "--yes", *arguments, expect=expect).stdout
    return [(level, text) for level, text in re.findall(r"^here: (\w+) +(.*)$", told, re.M)]


def levels(findings: list[tuple[str, str]], text: str) -> list[str]:
    return [level for level, told in findings if text in told]


def queued(what: str) -> list[str]:
    """Of every job that the scheduler has."""
    words = ["squeue", "-h", "-o", what]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


LOCAL = "sites: {here: {backend: local, processors: 2}}\n"
SLURM = "sites: {here: {backend: slurm, partition: batch, processors_per_node: 4}}\n"


def test_a_sound_site_on_this_machine(lab: Lab) -> None:
    lab.configure(LOCAL)
    told = found(lab)
    assert levels(told, "starts on") == ["ok"]
    assert levels(told, "sees and writes") == ["ok"]
    assert levels(told, "is reached from") == ["ok"]
    assert levels(told, "the clock of") == ["ok"]
    assert levels(told, ": completed after") == ["ok"]
    assert not list(lab.state.glob("check-*"))


def test_an_interpreter_that_is_not_there(lab: Lab) -> None:
    lab.configure("sites: {here: {backend: local, processors: 2, python: /opt/none/python3}}\n")
    told = found(lab, expect=1)
    assert levels(told, "does /opt/none/python3 start on the nodes") == ["error"]
    assert levels(told, "Set `python`, or load a module by `prologue`") == ["error"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_nothing_is_left_where_it_is_ended(lab: Lab, number: signal.Signals) -> None:
    lab.configure("sites: {here: {backend: local, processors: 2, python: /bin/cat}}\n")
    words = lab.command("site", "check", "here", "--live", "--yes")
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # what a shell starts behind it ignores it
    with subprocess.Popen(
        words, env=lab.environment, stderr=subprocess.PIPE, text=True, preexec_fn=heeds
    ) as check:
        until(lambda: list(lab.state.glob("check-*/daemon.log")), "its daemon starts")
        (folder,) = lab.state.glob("check-*")
        daemons = psutil.Process(check.pid).children()
        check.send_signal(number)
        assert check.wait(LONG) == 130
    psutil.wait_procs(daemons, timeout=LONG)
    assert not folder.exists()


def test_it_asks_first(lab: Lab) -> None:
    lab.configure(LOCAL)
    asked = run_text(
        lab.command("site", "check", "--live"), env=lab.environment, cwd=lab.work, input="n\n", timeout=LONG
    )
    assert asked.returncode != 0
    assert "submit one short job to here?" in asked.stderr
    assert "is submitted" not in asked.stderr


@pytest.mark.slurm
def test_a_sound_slurm(lab: Lab, slurm: Throwaway) -> None:
    lab.configure(SLURM)
    told = found(lab)
    assert levels(told, "starts on n") == ["ok", "ok"], "on two nodes"
    assert levels(told, "gives the job 2 processors as asked for") == ["ok", "ok"]
    assert levels(told, "sees and writes") == ["ok", "ok"]
    assert levels(told, "this machine, at the port of the daemon, is reached from n") == ["ok", "ok"]
    assert levels(told, "the clock of n") == ["ok", "ok"]
    assert levels(told, ": completed after") == ["ok"]
    assert levels(told, "memory of") in (["ok"] * 2, ["warning"] * 2), "as the cgroups of this machine are"
    until(lambda: not queued("%i"), "nothing of it is left in the queue")


@pytest.mark.slurm
def test_a_python_without_the_adaptor(lab: Lab, slurm: Throwaway) -> None:
    bare = lab.root / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    lab.configure(f"{SLURM[:-3]}, python: {bare}}}}}\n")
    told = found(lab, expect=1)
    assert levels(told, "No module named 'adaptor'") == ["error"]
    assert levels(told, "start on the nodes, with the adaptor installed?") == ["error"]


@pytest.mark.slurm
def test_workers_that_do_not_reach_the_daemon(lab: Lab, slurm: Throwaway) -> None:
    elsewhere = lab.root / "access.json"
    prologue = f"""\
        sed 's_tcp:[^"]*_tcp://127.0.0.1:9_g' $ADAPTOR_ACCESS >{elsewhere}; chmod 600 {elsewhere}
        export ADAPTOR_ACCESS={elsewhere} ADAPTOR_REACH_TIMEOUT=3
        """
    lab.configure(site("slurm", name="here", processors_per_node=4, prologue=textwrap.dedent(prologue)))
    told = found(lab, expect=1)
    assert levels(told, "has not reached the daemon for 3 s at tcp://127.0.0.1:9") == ["error"]
    assert levels(told, "set `daemon.host` to an address that they know") == ["error"]


@pytest.mark.slurm
@pytest.mark.ssh
def test_a_sound_slurm_behind_ssh(lab: Lab, slurm: Throwaway, sshd: ThrowawaySshd) -> None:
    ssh = {**sshd.site(), "directory": str(lab.root / "there")}
    lab.configure(site("slurm", name="here", python=sys.executable, environment=dict(slurm.env), ssh=ssh))
    told = found(lab)
    assert levels(told, "reached the daemon of the check, and ran a task") == ["ok", "ok"]
    assert levels(told, f"sees and writes {lab.root / 'there'}") == ["ok", "ok"]
    assert not list((lab.root / "there").glob("check-*"))


@pytest.mark.slurm
def test_a_step_that_gets_less_than_its_job(lab: Lab, slurm: Throwaway) -> None:
    prologue = narrow_srun(lab.root / "bin")
    lab.configure(f"{SLURM[:-3]}, prologue: '{prologue}'}}}}\n")
    told = found(lab, expect=1)
    assert levels(told, "gave 1 of 2 processors (job step): tasks use only these") == ["error", "error"]


@pytest.mark.slurm
def test_the_running_daemon_is_reached_and_left_alone(lab: Lab, slurm: Throwaway) -> None:
    lab.configure(SLURM)
    lab.run("daemon", "start")
    assert levels(found(lab), "the daemon is reached from n") == ["ok", "ok"]
    assert lab.ask("status", "--daemon")["stalled"] == ""


@pytest.mark.slurm
def test_an_address_that_leads_nowhere(lab: Lab, slurm: Throwaway) -> None:
    lab.configure(f"{SLURM}daemon: {{host: 192.0.2.1}}\n")
    lab.run("daemon", "start")
    access = lab.state / "access-worker-here.json"
    daemon = psutil.Process(lab.daemon_pid())
    daemon.suspend()  # it would write the file again
    try:
        access.write_text(re.sub(r'"tcp://127[^"]*"', '"tcp://192.0.2.1:9"', access.read_text()))
        told = found(lab, expect=1)
    finally:
        daemon.resume()
    assert levels(told, "set `daemon.host` to an address that the nodes know") == ["error", "error"]


@pytest.mark.slurm
def test_a_job_that_does_not_start_is_cancelled(lab: Lab, slurm: Throwaway) -> None:
    lab.configure(SLURM)
    everything = [
        "sbatch",
        "-p",
        "batch",
        "--exclusive",
        "-N4",
        "-t",
        "5",
        "-o",
        "/dev/null",
        "--wrap",
        "sleep 300",
    ]
    subprocess.run(everything, check=True, capture_output=True)
    until(lambda: queued("%T") == ["RUNNING"], "no processor is free")
    told = found(lab, "--wait", "4s", expect=1)
    assert levels(told, "did not start within 4s") == ["error"]
    assert levels(told, "--wait 2h") == ["error"]
    assert not any("adaptor-check" in name for name in queued("%j"))


@pytest.mark.pbs
def test_a_sound_openpbs(lab: Lab, openpbs: Throwaway) -> None:
    lab.configure("sites: {here: {backend: pbs}}\n")
    told = found(lab)
    assert levels(told, "starts on") == ["ok", "ok"]
    assert levels(told, "sees and writes") == ["ok", "ok"]
    assert levels(told, "is reached from") == ["ok", "ok"]
    assert levels(told, "end of job") in (["ok"], ["warning"]), "as job_history_enable is"
