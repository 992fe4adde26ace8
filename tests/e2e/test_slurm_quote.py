"""A quote on a real Slurm: samples, menu and picture, and the run on the chosen line to the last credit."""

from __future__ import annotations

import re

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, until
from tests.e2e.test_local_budget import never_above_budget
from tests.e2e.test_slurm_budget import SITE, recount

pytestmark = [pytest.mark.slurm, pytest.mark.nightly, pytest.mark.timeout(400)]

TASKS = 60
NAMES = ["cheapest", "cheapest +10 %", "cheapest +20 %", "fastest -20 %", "fastest -10 %", "fastest"]


def test_samples_menu_and_the_chosen_line(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag(["sleep 1"] * TASKS)
    quoted = lab.run("quote", "tasks.bag", "--choose", "4")
    title, head, *lines, chosen, together = quoted.stdout.splitlines()
    assert title == "30 tasks left after the sample; ranges of 90 % probability"
    assert head.split() == ["line", "choice", "credits", "range", "time", "within", "processors"]
    assert [re.split(r"\s{2,}", line)[1] for line in lines] == NAMES
    assert all(re.search(r"\d+ at hpc$", line) for line in lines)
    assert "bag 1: 30 tasks as a sample at hpc" in quoted.stderr
    assert chosen == "bag 2: 30 tasks"
    assert together.endswith("adaptor results 1,2")
    lab.wait(2, timeout=200)
    for bag in (1, 2):
        exactly_one_result_each(lab, bag, 30)
    slots = int(lines[3].split()[-3])
    asked = [each["p"] for each in lab.ask("report", "2")["requests"]]
    told = lab.run("why", "--limit", "100").stdout
    assert "by its quote" in told
    assert max(asked) <= slots or "is planned anew" in told
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
