"""Holes of a known size on a real Slurm: what `site slots` and `when` say, and a request that takes one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, site
from tests.living import until

pytestmark = pytest.mark.slurm

SITE = site("slurm", (2, 16, "4h"))
ROUNDING = 60.0
"""Seconds: Slurm plans by the minute."""


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
    short, long = slurm.occupy(1, 20), slurm.occupy(2, 40)
    until(lambda: slurm.run(["squeue", "-h", "-t", "R", "-o", "%i"]).split() != [], "jobs run")
    until(lambda: len(slurm.run(["squeue", "-h", "-t", "R", "-o", "%i"]).split()) == 2, "both run")
    whole = slurm.occupy(4, 30)
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
    nowhere = {"SLURM_CONF": "/nowhere/slurm.conf"}
    lab.configure(site("slurm", (2, 16, "4h"), environment=nowhere, command_timeout=3))
    outcome = lab.run("site", "slots", expect=1)
    assert outcome.stdout.startswith("hpc: ")
    assert "/nowhere/slurm.conf" in outcome.stdout or "squeue" in outcome.stdout or "sinfo" in outcome.stdout


def when(lab: Lab, *words: str) -> Any:
    """At the earliest place."""
    return lab.ask("when", *words)[0]


def test_requests_and_jobs_beside_a_queue_of_known_shape(slurm: ThrowawaySlurm, lab: Lab) -> None:
    """Two nodes for 40 minutes, and a job that wants all four for 30."""
    empty = when(lab, "-p", "16", "-t", "1h")
    assert (empty["site"], empty["partition"]) == ("here", "batch"), "without a configuration"
    assert empty["start"]["value"] == empty["observed"]
    long = slurm.occupy(2, 40)
    until(lambda: slurm.run(["squeue", "-h", "-t", "R", "-o", "%i"]).split() == [long], "it runs")
    whole = slurm.occupy(4, 30)
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


def test_a_request_takes_the_hole_in_front_of_a_planned_job(slurm: ThrowawaySlurm, lab: Lab) -> None:
    busy = slurm.occupy(2, 15)
    until(lambda: slurm.run(["squeue", "-h", "-j", busy, "-t", "R"]), "the first job runs")
    planned = slurm.occupy(4, 30)
    before = until(lambda: told(slurm, planned, "%S"), "the second job is planned")
    hole = before - time.time()
    assert 13 * 60 < hole <= 15 * 60

    lab.configure(site("slurm", (2, 16, "4h"), initial_tr="5m"))
    lab.bag(["sleep 5"] * 16)
    submitted = time.time()
    bag = lab.submit("tasks.bag")
    running = until(
        lambda: [pilot for pilot in lab.pilots() if pilot["state"] == "running"],
        "a pilot has started",
    )
    (pilot,) = running
    assert pilot["p"] == 8, "two free nodes of four processors"
    assert 5 * 60 < pilot["tr"] <= hole - 60, "no longer than the hole"
    issued = next(p for p in lab.pilots() if p["id"] == pilot["id"])
    assert issued["predicted_start"] is not None
    until(lambda: told(slurm, planned, "%S"), "the second job is still planned")
    assert told(slurm, planned, "%S") <= before + 1, "the planned job is not delayed"
    lab.wait(bag)
    assert time.time() - submitted < hole
