"""Where a real Slurm answers and no configuration exists, tasks run here by `--site local` alone."""

from __future__ import annotations

import sys

import pytest

from adaptor.errors import UsageError
from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import LONG, Lab
from tests.living import run_text

pytestmark = pytest.mark.slurm


@pytest.fixture
def unconfigured(slurm: ThrowawaySlurm, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delenv("ADAPTOR_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(lab.root / "config"))
    return lab


def test_a_login_node_is_not_computed_on_by_accident(unconfigured: Lab) -> None:
    lab = unconfigured
    bag = lab.bag(["hostname > ran"])
    for command in ("submit", "run"):
        refused = lab.run(command, bag, expect=UsageError.exit_code).stderr
        assert "Slurm answers here" in refused
        assert "adaptor site init" in refused
        assert "--site local" in refused
    program = [sys.executable, "-c", "import adaptor; adaptor.Executor()"]
    executor = run_text(program, env=lab.environment, cwd=lab.work, timeout=LONG)
    assert "LoginNodeError: Slurm answers here" in executor.stderr
    assert not (lab.state / "daemon.log").exists(), "no daemon was started"
    chosen = lab.run("run", bag, "--site", "local")
    assert "tasks run on this machine" in chosen.stderr
    assert (lab.work / "ran").exists()


def test_both_ways_out_lead_on(unconfigured: Lab) -> None:
    lab = unconfigured
    bag = lab.bag(["echo $SLURM_JOB_ID > ran"])
    lab.run("run", bag, expect=UsageError.exit_code)
    lab.run("site", "init")
    lab.run("run", bag)
    assert (lab.work / "ran").read_text().strip().isdecimal(), "it ran in a pilot of Slurm"
