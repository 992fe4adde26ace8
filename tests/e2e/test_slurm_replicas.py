"""A task that the end of its pilot may cut, on a real Slurm: another pilot starts it once more in time."""

from __future__ import annotations

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, site
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.nightly]

LONG = 240


def test_a_long_task_in_a_short_hole_does_not_wait_to_be_cut(slurm: ThrowawaySlurm, lab: Lab) -> None:
    """Three nodes are free for four minutes, as far as can be foreseen; then they are free for long."""
    slurm.occupy(1, 4)
    wide = slurm.occupy(4, 30)
    until(lambda: "N/A" not in slurm.run(["squeue", "-h", "-j", wide, "-o", "%S"]), "its start is planned")
    limits = {"max_pending_requests": 4, "max_pilots": 100, "max_proc": 16, "max_tr": "10m"}
    lab.configure(site("slurm", heuristic="elastic", limits=limits, idle_timeout=5))
    lab.bag(["sleep 3"] * 8 + [f"sleep {LONG}"])
    lab.submit("tasks.bag")
    until(lambda: lab.status()["done"] == 8, "the short ones are done", 60)
    slurm.run(["scancel", wide])
    lab.wait()
    why = lab.run("why", "last").stdout
    lab.run("daemon", "stop")
    first, *others = sorted(lab.attempts(1, [8]), key=lambda each: int(each["number"]))
    assert first["outcome"] == "walltime"
    (done,) = [each for each in others if each["outcome"] == "done"]
    assert done["started"] < first["started"] + 150, "while the first one still ran"
    assert "for tasks that their pilots may cut" in why
