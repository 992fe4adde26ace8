"""`adaptor site slots` on a real Slurm whose queue has a known shape prints exactly its holes."""

from __future__ import annotations

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]

SITE = """
    sites:
      hpc:
        backend: slurm
        partition: batch
        limits: {max_pending_requests: 2, max_proc: 16, max_tr: 4h}
"""
ROUNDING = 60.0
"""Seconds: Slurm plans by the minute."""


def submit(slurm: ThrowawaySlurm, nodes: int, minutes: int) -> str:
    return slurm.run(
        ["sbatch", "--parsable", "-p", "batch", f"-N{nodes}", "--exclusive", f"-t{minutes}", "-o/dev/null",
         "--wrap", "sleep 3600"]
    ).strip()  # fmt: skip


def told(slurm: ThrowawaySlurm, job: str, field: str) -> float:
    text = slurm.run(["squeue", "-h", "-j", job, "-o", field], env={"SLURM_TIME_FORMAT": "%s"}).strip()
    return float(text) if text.isdigit() else 0.0


Holes = list[tuple[float, float | None, int]]
"""From when, until when, and processors."""


def holes(lab: Lab) -> Holes:
    (site,) = lab.ask("site", "slots", "hpc")
    assert site["problem"] == ""
    return [(seconds(slot["start"]), slot["end"] and seconds(slot["end"]), slot["processors"])
            for slot in site["slots"]]  # fmt: skip


def beside(slurm: ThrowawaySlurm, lab: Lab, job: str) -> tuple[Holes, float] | None:
    """The holes, and the start that Slurm plans for a job; None where it has changed meanwhile."""
    before = told(slurm, job, "%S")
    found = holes(lab)
    return (found, before) if told(slurm, job, "%S") == before > 0 else None


def seconds(iso: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(iso.replace("Z", "+00:00")).timestamp()


def test_the_holes_between_running_and_planned_jobs(slurm: ThrowawaySlurm, lab: Lab) -> None:
    """One node for 20 minutes, two for 40, then all four for 30: three holes, and all the time after."""
    lab.configure(SITE)
    short, long = submit(slurm, 1, 20), submit(slurm, 2, 40)
    until(lambda: slurm.run(["squeue", "-h", "-t", "R", "-o", "%i"]).split() != [], "jobs run")
    until(lambda: len(slurm.run(["squeue", "-h", "-t", "R", "-o", "%i"]).split()) == 2, "both run")
    whole = submit(slurm, 4, 30)
    planned = until(lambda: told(slurm, whole, "%S"), "the third job is planned")
    short_ends, long_ends = told(slurm, short, "%e"), told(slurm, long, "%e")
    assert abs(planned - long_ends) <= ROUNDING

    for how in ("without a daemon", "through the daemon"):
        found, planned = until(lambda: beside(slurm, lab, whole), "Slurm keeps its plan during a look")
        now = found[0][0]
        assert found == [
            (now, planned, 4),
            (short_ends, planned, 8),
            (pytest.approx(planned + 30 * 60, abs=ROUNDING), None, 16),
        ], how
        lab.run("daemon", "start")

    table = lab.run("site", "slots").stdout.splitlines()
    assert table[0].startswith("hpc: 4 of 16 processors free now")
    assert [line.split()[0] for line in table[2:5]] == ["4", "8", "16"]
    assert "none fits" not in "".join(table)


def test_a_scheduler_that_does_not_answer_is_named(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(
        SITE + "        environment: {SLURM_CONF: /nowhere/slurm.conf}\n        command_timeout: 3\n"
    )
    outcome = lab.run("site", "slots", expect=1)
    assert outcome.stdout.startswith("hpc: ")
    assert "/nowhere/slurm.conf" in outcome.stdout or "squeue" in outcome.stdout or "sinfo" in outcome.stdout
