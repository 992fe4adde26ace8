"""A budget on the local site; `test_slurm_budget.py` kills the daemon in between and counts as Slurm does."""

from __future__ import annotations

import math
import sqlite3
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from adaptor.budget.accounting.entries import Reserved
from adaptor.budget.accounting.ledger import Ledger
from adaptor.journal.credits import entries
from tests.e2e.lab import Lab, site
from tests.living import until

PRICE = 10
SITE = site(
    "local", (2, 2, "2m"), processors=3, initial_tr=5, pad=3, idle_timeout=2, overrun=2,
    price={"explicit": PRICE, "donated": 2},
)  # fmt: skip


@pytest.fixture
def priced(lab: Lab) -> Lab:
    lab.configure(SITE)
    lab.bag("sleep 0.3" for _ in range(40))
    return lab


def has_done(lab: Lab, results: int) -> bool:
    return int(lab.status()["done"]) >= results


def used(lab: Lab, bag: int = 1) -> dict[str, float]:
    (line,) = lab.ask("credits", str(bag))["bags"]
    return dict(line)


def never_above_budget(path: Path) -> None:
    """By every entry that was ever written."""
    with closing(sqlite3.connect(path)) as db:
        written = entries(db)
    for until_now in range(len(written) + 1):
        for balance in Ledger(written[:until_now]).balances(time.time()):
            assert balance.left >= 0


def test_a_budget_that_holds_no_request_is_refused_with_the_number_needed(priced: Lab) -> None:
    refused = priced.run("submit", "tasks.bag", "--budget", "0.001", expect=2).stderr
    needed = math.ceil((5 + 3) * PRICE / 3600 * 1e6) / 1e6
    assert f"{needed:g}" in refused
    priced.bag(["#ADAPTOR budget=0.001", "true"], "in-file.bag")
    assert f"{needed:g}" in priced.run("submit", "in-file.bag", expect=2).stderr
    for wrong in ("0", "-4", "nan", "much"):
        assert "credits" in priced.run("submit", "tasks.bag", "--budget", wrong, expect=2).stderr
    assert priced.ask("status")["bags"] == []


def test_without_a_budget_credits_are_only_counted(priced: Lab) -> None:
    priced.submit("tasks.bag")
    priced.wait()
    line = until(lambda: used(priced) if used(priced)["used"] else None, "a pilot has been charged")
    assert line["budget"] is None
    assert line["left"] is None


def test_a_cheap_bag_begins_with_one_processor_and_tells_what_it_will_cost(priced: Lab) -> None:
    assert "in the past" in priced.run("submit", "tasks.bag", "--deadline", "2020-01-01", expect=2).stderr
    priced.bag([f"{priced.hold_after(30)}; sleep 0.3"] * 40)
    bag = priced.submit("tasks.bag", "--prefer", "cheap", "--deadline", "10m")
    ahead = until(
        lambda: (told := priced.status(bag)["forecast"]) and told["cost"] is not None and told,
        "enough is known for a forecast of the cost",
    )
    assert 0 < ahead["cost"]["low"] <= ahead["cost"]["value"] <= ahead["cost"]["high"]
    assert "will cost about" in priced.run("status").stdout
    priced.release()
    priced.wait(bag)
    assert priced.pilots()[0]["p"] == 1
    assert "(cheap with a deadline)" in priced.pilots()[0]["reason"]
    assert priced.status(bag)["forecast"] is None


NARROW = site(
    "local", processors=3, limits={"max_pilots": 60, "max_tr": "10m"}, pad=8, idle_timeout=2, overrun=2,
    price={"explicit": PRICE, "donated": 2}, poll_interval=2,
)  # fmt: skip
BUDGET = 0.5  # credits: 180 s of a processor


FIRST = 62.0  # seconds, more than are paid for at first


def parts_paid(lab: Lab) -> dict[int, list[int]]:
    """By pilot: the seconds of its walltime that were paid for, one after another."""
    with closing(sqlite3.connect(lab.state / "journal.sqlite")) as db:
        found: dict[int, list[int]] = {}
        for entry in entries(db):
            if isinstance(entry, Reserved):
                found.setdefault(entry.pilot, []).append(entry.paid or entry.tr)
    return found


def kept_within_budget(lab: Lab) -> list[dict[str, Any]]:
    """The attempts of the long task; the daemon is stopped."""
    until(lambda: used(lab)["reserved"] == 0, "all pilots have ended")
    assert 0 < used(lab)["used"] <= BUDGET
    lab.run("daemon", "stop")
    never_above_budget(lab.state / "journal.sqlite")
    return lab.attempts(1, [0])


@pytest.fixture
def one_is_long(lab: Lab) -> Lab:
    """A bag of one task that holds and short ones, whose pilots could cost far more than its budget."""
    lab.configure(NARROW)
    lab.bag([lab.hold(), *["true"] * 20])
    lab.submit("tasks.bag", "--budget", str(BUDGET))
    until(lambda: has_done(lab, 20), "the short tasks are done")
    until(lambda: len(lab.jobs_in_system()) == 1, "the pilot of the long one is left")
    return lab


def test_a_long_task_is_paid_for_by_what_short_ones_give_back(one_is_long: Lab) -> None:
    lab = one_is_long
    (pilot,) = [each for each in lab.pilots() if each["state"] == "running"]
    over = datetime.fromisoformat(pilot["started"]).timestamp() + FIRST
    until(lambda: time.time() > over, "the first part is over")
    lab.release()
    lab.wait()
    attempts = kept_within_budget(lab)
    assert len(attempts) == 1
    parts = parts_paid(lab)[attempts[0]["pilot"]]
    assert parts == sorted(parts)
    assert len(parts) >= 2
    assert parts[0] < FIRST, "of ten minutes"


def test_without_a_daemon_a_pilot_ends_with_what_is_paid_for(one_is_long: Lab) -> None:
    lab = one_is_long
    lab.kill_daemon()
    until(
        lambda: any("paid time is up" in log.read_text() for log in lab.state.glob("**/worker-*.log")),
        "its worker ends it",
    )
    lab.release()
    lab.run("daemon", "start")
    lab.wait()
    assert [each["outcome"] for each in kept_within_budget(lab)] == ["walltime", "done"]
