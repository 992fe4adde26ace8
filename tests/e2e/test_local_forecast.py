"""Forecasts on the local site: the first is kept across `kill -9`, and judged when its bag has ended."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

SITE = site(
    "local",
    (2, 2, "2m"),
    processors=3,
    initial_tr=5,
    pad=3,
    idle_timeout=2,
    overrun=2,
    price={"explicit": 10, "donated": 2},
)
TASKS = 40
FREE = 15
"""Tasks that run at once; the others wait until they are released."""


@pytest.fixture
def priced(lab: Lab) -> Lab:
    lab.configure(SITE)
    lab.bag([f"{lab.hold_after(FREE)}; sleep 0.5"] * TASKS)
    return lab


def report(lab: Lab, bag: int) -> dict[str, Any]:
    return dict(lab.ask("report", str(bag)))


def first(lab: Lab, bag: int) -> Any:
    return report(lab, bag)["first_forecast"]


def is_judged(lab: Lab, bag: int) -> bool:
    return first(lab, bag)["final_cost"] is not None


def run_with_a_forecast(lab: Lab) -> int:
    """A bag that has just got its first forecast, and does not end before it is released; its number."""
    for name in ("begun", "gate"):
        (lab.work / name).unlink(missing_ok=True)
    bag = lab.submit("tasks.bag", "--prefer", "cheap")
    until(partial(first, lab, bag), "enough is known for a forecast")
    return bag


@pytest.mark.nightly
def test_a_record_is_told_of_bags_that_nobody_changed(priced: Lab) -> None:
    bag = run_with_a_forecast(priced)
    made = first(priced, bag)
    assert TASKS / 4 <= made["finished"] <= TASKS / 2
    assert made["tasks"] == TASKS
    assert "forecast accuracy" not in priced.run("status").stdout
    priced.kill_daemon()
    priced.release()
    priced.run("daemon", "start")
    priced.wait(bag)
    until(partial(is_judged, priced, bag), "all pilots are settled")
    exactly_one_result_each(priced, bag, TASKS)
    found = report(priced, bag)
    judged, record = found["first_forecast"], found["forecast_record"]
    assert {name: judged[name] for name in ("made", "finished", "cost", "end")} == {
        name: made[name] for name in ("made", "finished", "cost", "end")
    }, "the forecast of the daemon that was killed"
    assert judged["final_cost"] == pytest.approx(found["credits"]["used"])
    assert judged["final_end"] == found["bag"]["ended"]
    held = judged["cost"]["low"] - 1e-6 <= judged["final_cost"] <= judged["cost"]["high"] + 1e-6
    assert judged["cost_held"] is held
    assert judged["end_held"] is (judged["end"]["low"] <= judged["final_end"] <= judged["end"]["high"])
    assert (record["bags"], record["cost"]["held"], record["not_counted"]) == (1, int(held), {})

    changed = run_with_a_forecast(priced)
    told = priced.run("status", str(changed)).stdout
    assert "will cost about" in told
    priced.run("change", str(changed), "--budget", "5")
    priced.release()
    priced.wait(changed)
    assert first(priced, changed)["not_counted"] == "budget changed"
    assert priced.ask("status")["forecast_record"] == {**record, "not_counted": {"budget changed": 1}}
    assert "not counted: budget changed\n" in priced.run("report", str(changed)).stdout
    until(partial(is_judged, priced, changed), "all pilots are settled")
    priced.run("daemon", "stop")
    assert priced.ask("status")["forecast_record"] == {**record, "not_counted": {"budget changed": 1}}
    assert "\nfirst forecast, at " in priced.run("report", str(bag)).stdout
