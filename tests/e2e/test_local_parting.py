"""Two local sites of different price and speed: the cheaper one is used as far as the deadline allows."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.e2e.lab import Lab, exactly_one_result_each, keys_of, sites
from tests.e2e.test_local_budget import never_above_budget

SHORT = {"initial_tr": 2, "pad": 3, "idle_timeout": 2, "overrun": 2}
FAST = {"processors": 4, "prologue": "export NAP=0.5", "price": {"explicit": 40}}
CHEAP = {"processors": 2, "prologue": "export NAP=1", "price": {"explicit": 4}}
SITES = sites(
    {
        "fast": keys_of("local", (4, 4, "5m"), **FAST, **SHORT),
        "cheap": keys_of("local", (4, 2, "5m"), **CHEAP, **SHORT),
    }
)
TASKS = 40


def results_by_site(lab: Lab, bag: int) -> dict[str, int]:
    """Results by the site of the pilot that has them; the daemon is stopped for it."""
    lab.run("daemon", "stop", "--pilots")
    with closing(sqlite3.connect(lab.state / "journal.sqlite")) as db:
        rows = db.execute(
            "SELECT pilot.site, COUNT(*) FROM attempt JOIN pilot ON pilot.id = attempt.pilot"
            " WHERE attempt.bag = ? AND attempt.outcome = 'done' GROUP BY pilot.site",
            (bag,),
        ).fetchall()
    return dict(rows)


def test_the_cheaper_site_is_used_as_far_as_the_deadline_allows(lab: Lab) -> None:
    lab.configure(SITES)
    lab.bag(['sleep "$NAP"'] * TASKS)
    bag = lab.submit("tasks.bag", "--deadline", "18s", "--time", "2s")
    lab.wait(bag)
    exactly_one_result_each(lab, bag, TASKS)
    assert {pilot["site"] for pilot in lab.pilots()} == {"fast", "cheap"}
    told = lab.run("why", "--limit", "200").stdout
    assert "tasks at fast (" in told
    assert "at cheap (" in told


@pytest.mark.nightly
def test_with_time_enough_the_dear_site_is_left_out(lab: Lab) -> None:
    lab.configure(SITES)
    lab.bag(['sleep "$NAP"'] * 20)
    bag = lab.submit("tasks.bag", "--deadline", "10m", "--budget", "1")
    lab.wait(bag)
    exactly_one_result_each(lab, bag, 20)
    assert results_by_site(lab, bag) == {"cheap": 20}
    told = lab.run("why", "--limit", "200").stdout
    assert "cheap: divided: gets" in told
    never_above_budget(lab.state / "journal.sqlite")
