"""A budget on a real Slurm, with `kill -9` of the daemon in between, against Slurm's own job records."""

from __future__ import annotations

import math
import re
import sqlite3
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from backends.arrays import tag_of
from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.e2e.test_local_budget import has_done, never_above_budget, used
from tests.living import until

pytestmark = pytest.mark.slurm

PRICE, UNIT, TASKS = 10, 10, 60
AGREED: dict[str, Any] = {
    "initial_tr": "5s", "pad": "5s", "idle_timeout": 3, "overrun": "30s", "price": {"explicit": PRICE},
    "daemon": {"worker_timeout": 8},
}  # fmt: skip
SITE = site("slurm", (3, 4, "20m"), charging_unit=f"{UNIT}s", **AGREED)
NARROW = site("slurm", limits={"max_pilots": 100, "max_tr": "20m"}, charging_unit=f"{UNIT}s", **AGREED)


def recount(slurm: ThrowawaySlurm, lab: Lab, unit: int = UNIT) -> float:
    """Credits by what Slurm says of each pilot of a lab (its daemon is stopped): processors, start, end.

    Other jobs do not count: Slurm forgets them while the test runs.
    """
    with closing(sqlite3.connect(lab.state / "journal.sqlite")) as db:
        tags = {tag for (tag,) in db.execute("SELECT tag FROM pilot")}
    total = 0.0
    for job in slurm.run(["scontrol", "--oneliner", "show", "job"]).splitlines():
        told = dict(re.findall(r"(\w+)=(\S+)", job))
        index, name = told.get("ArrayTaskId", ""), told.get("JobName", "")
        tag = tag_of(name, int(index)) if index.isdecimal() else name
        if tag not in tags or told["StartTime"] == "Unknown":
            continue
        start, end = (datetime.fromisoformat(told[key]) for key in ("StartTime", "EndTime"))
        units = math.ceil(max(0.0, (end - start).total_seconds()) / unit)
        total += math.ceil(int(told["NumCPUs"]) * units * unit * PRICE * 1e6 / 3600) / 1e6
    return total


@pytest.mark.parametrize("config", [SITE, NARROW], ids=["few", "many"])
def test_a_budget_is_kept_across_kills_and_the_credits_are_those_of_slurm(
    slurm: ThrowawaySlurm, lab: Lab, config: str
) -> None:
    lab.configure(config)
    lab.bag(["sleep 1"] * TASKS)
    refused = lab.run("submit", "tasks.bag", "--budget", "0.1", expect=2).stderr
    least = 60  # seconds of the smallest request, of which the first part is paid for
    assert f"{math.ceil(least * PRICE / 3600 * 1e6) / 1e6:g}" in refused
    lab.submit("tasks.bag", "--budget", "2.2")
    for results in (5, 20):
        until(partial(has_done, lab, results), "the bag goes on")
        lab.restart_daemon()
    lab.wait()
    exactly_one_result_each(lab, 1, TASKS)
    until(lambda: used(lab)["reserved"] == 0, "all pilots have ended")
    line = used(lab)
    lab.run("daemon", "stop")
    assert 0 < line["used"] <= 2.2
    assert line["used"] == pytest.approx(recount(slurm, lab), abs=1e-6)
    never_above_budget(lab.state / "journal.sqlite")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("aims", "budget", "within"),
    [
        ((), 0.0, 0.0),
        (("--budget", "3"), 3.0, 0.0),
        (("--budget", "1"), 1.0, 0.0),
        (("--budget", "1", "--prefer", "fast"), 1.0, 0.0),
        (("--deadline", "90s"), 0.0, 90.0),
        (("--deadline", "120s", "--budget", "1.5"), 1.5, 120.0),
    ],
    ids=["none", "ample", "tight", "fast", "deadline", "both"],
)
def test_a_bag_keeps_its_budget_and_its_deadline(
    slurm: ThrowawaySlurm, lab: Lab, aims: tuple[str, ...], budget: float, within: float
) -> None:
    """80 tasks of 2 to 4 s are 0.67 credits of work at 10 a processor-hour, charged by the second."""
    lab.configure(site("slurm", (3, 4, "20m"), charging_unit="1s", **AGREED))
    lab.bag([f"sleep {2 + task % 3}" for task in range(80)])
    lab.submit("tasks.bag", *aims)
    lab.wait()
    exactly_one_result_each(lab, 1, 80)
    until(lambda: used(lab)["reserved"] == 0, "all pilots have ended")
    line, (bag,) = used(lab), lab.ask("status", "1")["bags"]
    took = (datetime.fromisoformat(bag["ended"]) - datetime.fromisoformat(bag["submitted"])).total_seconds()
    print(f"{aims}: {line['used']} credits, {took:.0f} s")
    lab.run("daemon", "stop")
    assert line["used"] == pytest.approx(recount(slurm, lab, unit=1), abs=1e-6)
    if budget:
        assert line["used"] <= budget
        never_above_budget(lab.state / "journal.sqlite")
    if within:
        assert took <= within


QUOTED = 60
NAMES = ["cheapest", "cheapest +10 %", "cheapest +20 %", "fastest -20 %", "fastest -10 %", "fastest"]


@pytest.mark.nightly
def test_samples_menu_and_the_chosen_line(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag(["sleep 1"] * QUOTED)
    quoted = lab.run("quote", "tasks.bag", "--choose", "4")
    title, head, *lines, chosen, together = quoted.stdout.splitlines()
    assert title == "30 tasks left after the sample; ranges of 90 % probability"
    assert head.split() == ["line", "choice", "credits", "range", "time", "within", "processors"]
    assert [re.split(r"\s{2,}", line)[1] for line in lines] == NAMES
    assert all(re.search(r"\d+ at hpc$", line) for line in lines)
    assert "bag 1: 30 tasks as a sample at hpc" in quoted.stderr
    assert chosen == "bag 2: 30 tasks"
    assert together.endswith("adaptor results 1,2")
    lab.wait(2)
    for bag in (1, 2):
        exactly_one_result_each(lab, bag, 30)
    until(lambda: not any(line["reserved"] for line in credits_of(lab)), "all pilots have ended")
    bags = credits_of(lab)
    lab.run("daemon", "stop")
    used = {line["bag"]: line["used"] for line in bags}
    assert used.keys() == {1, 2}
    assert sum(used.values()) == pytest.approx(recount(slurm, lab), abs=1e-6)
    (second,) = (line for line in bags if line["bag"] == 2)
    assert 0 < second["used"] <= second["budget"]
    never_above_budget(lab.state / "journal.sqlite")


def credits_of(lab: Lab) -> list[dict[str, float]]:
    return [line for bag in ("1", "2") for line in lab.ask("credits", bag)["bags"]]
