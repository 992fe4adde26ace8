"""`adaptor when` on a real Slurm whose queue has a known shape, with a daemon and without a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, until
from tests.e2e.test_slurm_slots import ROUNDING, SITE, seconds, submit, told

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]


def when(lab: Lab, *words: str) -> Any:
    """At the earliest place."""
    return lab.ask("when", *words)[0]


def test_requests_and_jobs_beside_a_queue_of_known_shape(slurm: ThrowawaySlurm, lab: Lab) -> None:
    """Two nodes for 40 minutes, and a job that wants all four for 30."""
    empty = when(lab, "-p", "16", "-t", "1h")
    assert (empty["site"], empty["partition"]) == ("here", "batch"), "without a configuration"
    assert empty["start"]["value"] == empty["observed"]
    long = submit(slurm, 2, 40)
    until(lambda: slurm.run(["squeue", "-h", "-t", "R", "-o", "%i"]).split() == [long], "it runs")
    whole = submit(slurm, 4, 30)
    until(lambda: told(slurm, whole, "%S"), "Slurm plans it")
    ends = told(slurm, long, "%e")

    for how in ("without a daemon", "through the daemon"):
        request = when(lab, "-p", "16", "-t", "1h")
        assert seconds(request["planned"]) == pytest.approx(ends + 30 * 60, abs=2 * ROUNDING), how
        assert f"job {whole} (16 processors)" in request["reason"]
        assert request["start"]["low"] < request["start"]["value"] <= request["planned"], how
        longer = when(lab, "--nodes", "2", "-t", "2h")
        assert longer["choices"][0]["start"]["value"] == longer["observed"], "shorter, it starts now"
        job = when(lab, "--job", whole)
        assert (job["standing"], job["processors"]) == ("waits", 16)
        assert seconds(job["planned"]) == pytest.approx(ends, abs=ROUNDING)
        assert seconds(job["scheduler"]) == pytest.approx(ends, abs=ROUNDING)
        lab.configure(SITE)
        lab.run("daemon", "start")

    assert when(lab, "--job", long)["standing"] == "running"
    for words, said in (
        (("-p", "17", "-t", "1h"), "it needs 17 processors, and the nodes have 16"),
        (("-p", "1", "-t", "5h"), "it asks for 5h, and 4h is the most (MaxTime of partition batch)"),
        (("--job", "999999"), "job 999999 is not known"),
    ):
        assert said in lab.run("when", *words, expect=2).stderr
    slurm.run(["scontrol", "hold", whole])
    held = until(lambda: (job := when(lab, "--job", whole))["standing"] == "held" and job, "it is held")
    assert "JobHeldUser" in held["reason"] or "JobHeldAdmin" in held["reason"]
    slurm.run(["scancel", long, whole])
    until(lambda: when(lab, "--job", long)["standing"] == "ended", "it has ended")
