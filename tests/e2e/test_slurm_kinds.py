"""Three bags of one program in a row: what the second and the third ask for, by what the first has shown."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.slurm


FIT = "import sys, time; held = bytearray(int(sys.argv[2]) << 20); time.sleep(float(sys.argv[1]))"


def remembering(remember: bool) -> str:
    terms = {"heuristic": "adaptive", "initial_tr": "1h", "idle_timeout": 3}
    return site("slurm", (2, 4, "4h"), remember=remember, **terms)


def fit(lab: Lab, number: int, *options: str) -> int:
    """A bag of 6 tasks that hold 96 MiB for seconds."""
    (lab.work / "fit.py").write_text(FIT)
    bag = lab.bag([f"python3 fit.py 2.{task} 96 > {number}.{task}.txt" for task in range(6)])
    return lab.submit(bag, *options)


def asked(lab: Lab, bag: int) -> list[dict[str, Any]]:
    """The requests that were made for a bag, in their order."""
    return sorted(lab.ask("report", str(bag))["requests"], key=lambda each: each["id"])


def told(lab: Lab, bag: int) -> list[str]:
    return [line["text"] for line in lab.ask("why", str(bag)) if line["kind"] == "earlier"]


def no_pilot(lab: Lab) -> None:
    until(
        lambda: all(each["state"] not in ("queued", "running") for each in lab.pilots()), "all pilots ended"
    )


@pytest.mark.nightly
def test_the_second_and_third_bag_ask_for_what_the_first_needed(
    mixed_slurm: ThrowawaySlurm, lab: Lab
) -> None:
    lab.configure(remembering(True))
    for number in (1, 2, 3):
        bag = fit(lab, number, "--mem", "auto")
        lab.wait(bag)
        exactly_one_result_each(lab, bag, 6)
        no_pilot(lab)
    first, second, third = (asked(lab, bag)[0] for bag in (1, 2, 3))
    assert first["tr"] > 3600
    assert [second["tr"], third["tr"]] == [60, 60]
    assert "no earlier task of its kind was measured" in told(lab, 1)[0]
    assert told(lab, 2)[0].startswith("6 earlier tasks of fit.py took ")
    assert told(lab, 3)[0].startswith("12 earlier tasks of fit.py took ")
    assert all("192M for each task" in told(lab, bag)[1] for bag in (2, 3))


@pytest.mark.nightly  # waits for a schedule
def test_a_bag_of_a_known_kind_takes_a_hole_in_which_others_wait(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(remembering(True))
    lab.wait(fit(lab, 1))
    no_pilot(lab)
    busy = slurm.occupy(2, 15)
    until(lambda: slurm.run(["squeue", "-h", "-j", busy, "-t", "R"]), "the first job runs")
    planned = slurm.occupy(4, 30)
    until(lambda: slurm.run(["squeue", "-h", "-j", planned, "-o", "%S"]).strip() != "N/A", "it is planned")
    unknown = lab.bag(["python3 other.py"] * 6, "other.bag")
    starts = [datetime.fromisoformat(each["start"]) for each in lab.ask("plan", unknown)["requests"]]
    assert all(start.timestamp() - time.time() > 30 * 60 for start in starts)
    lab.wait(fit(lab, 2))
    assert [each["tr"] for each in asked(lab, 2)] == [60, 60]
    assert slurm.run(["squeue", "-h", "-j", busy, "-t", "R"]), "the hole is still there"


@pytest.mark.nightly
def test_a_site_that_is_not_to_remember_asks_as_before(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(remembering(False))
    for number in (1, 2):
        lab.wait(fit(lab, number))
        no_pilot(lab)
    assert [asked(lab, bag)[0]["tr"] > 3600 for bag in (1, 2)] == [True, True]
    assert told(lab, 2) == []
