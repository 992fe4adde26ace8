"""Forecasts, what came of them, and their record in words."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from adaptor.api import DonationView, FirstForecastView, ForecastView
from adaptor.cli.printing import clock
from adaptor.cli.sentences import (
    donation_lines,
    end_words,
    first_forecast_lines,
    forecast_line,
    record_lines,
    used_words,
)
from adaptor.forecast.record import Record, Share
from adaptor.model import Estimate

AT = 1_700_000_000.0


def first(**changes: Any) -> FirstForecastView:
    fields: dict[str, Any] = {
        "made": AT,
        "finished": 30,
        "tasks": 1200,
        "cost": Estimate(0.1475, 0.2, 0.2528),
        "end": Estimate(AT + 40, AT + 60, AT + 90),
        "final_cost": None,
        "final_end": None,
        "cost_held": None,
        "end_held": None,
        "not_counted": "",
    }
    return FirstForecastView(**(fields | changes))


def record(bags: int = 23, **not_counted: int) -> Record:
    return Record(
        bags=bags,
        cost=Share(held=21, value=21 / 23, low=0.732, high=0.976),
        end=Share(held=20, value=20 / 23, low=0.679, high=0.955),
        not_counted={name.replace("_", " "): count for name, count in not_counted.items()},
    )


def test_the_record_in_one_line_from_twenty_bags_on() -> None:
    told = "forecast accuracy: of 23 bags, 20 ends and 21 costs within their intervals"
    assert list(record_lines(record(cancelled=2))) == [told]
    few = Record(bags=3, cost=None, end=None, not_counted={"retried": 1})
    assert list(record_lines(few)) == [
        "forecast accuracy: too little known here (3 of 19 bags);"
        " until then intervals are as wide as at other sites"
    ]


def test_what_was_forecast_when_and_what_came() -> None:
    forecast = (
        f"first forecast, at {clock(AT)}, with 30 of 1,200 tasks done: cost 0.1475 to 0.2528 credits,"
        f" end {clock(AT + 40)} to {clock(AT + 90)}"
    )
    ended = {"final_end": AT + 100, "end_held": False}
    assert first_forecast_lines(first()) == [forecast]
    assert first_forecast_lines(first(**ended)) == [
        forecast,
        f"what came: cost not known until all its pilots are settled, end {clock(AT + 100)} (outside)",
    ]
    assert first_forecast_lines(first(**ended, final_cost=0.21, cost_held=True)) == [
        forecast,
        f"what came: cost 0.21 credits (within), end {clock(AT + 100)} (outside)",
    ]


def test_a_bag_that_does_not_count_says_why_and_is_not_judged() -> None:
    changed = {"not_counted": "budget changed"}
    assert first_forecast_lines(first(**changed))[1:] == ["not counted: budget changed"]
    assert first_forecast_lines(first(**changed, final_cost=0.3, final_end=AT + 70))[1:] == [
        f"what came: cost 0.3 credits, end {clock(AT + 70)}; not counted: budget changed"
    ]


def test_a_forecast_that_would_be_late() -> None:
    end = Estimate(AT - 10, AT, AT + 10)
    ahead = ForecastView(cost=Estimate(11.0, 12.3, 14.2), end=end, deadline=AT - 5)
    told = forecast_line(ahead)
    assert told.startswith(f"done {clock(AT)} ({clock(AT - 10)} to {clock(AT + 10)}), ")
    assert ", will cost about 12.3 credits (11 to 14.2), " in told
    assert told.endswith(f"deadline {clock(AT - 5)}, about 5s late")


def test_a_forecast_says_what_the_budget_pays_for() -> None:
    """The bag ends with its budget: an end and a cost beyond it are those with a larger one."""
    ahead = ForecastView(cost=Estimate(11.0, 12.3, 14.2), end=Estimate(AT, AT, AT), deadline=None)
    enough, near, short = (
        msgspec.structs.replace(ahead, budget=budget, paid=paid)
        for budget, paid in ((20.0, None), (13.0, None), (6.0, 19))
    )
    assert forecast_line(enough) == forecast_line(ahead)
    assert forecast_line(near) == f"{forecast_line(ahead)} of a budget of 13"
    assert end_words(near) == end_words(ahead)
    assert end_words(short) == "its budget of 6 credits pays for about 19 tasks at most"
    assert forecast_line(short) == f"{end_words(short)}; with more: {forecast_line(ahead)}"


def test_an_end_is_told_to_the_minute_where_that_is_enough() -> None:
    nothing: dict[str, Any] = {"cost": None, "deadline": None}
    now = 1_700_000_000.0
    ahead = ForecastView(end=Estimate(now + 300, now + 600, now + 1200), **nothing)
    times = [clock(at, now)[:5] for at in (now + 600, now + 300, now + 1200)]
    assert end_words(ahead, now) == f"done {times[0]} ({times[1]} to {times[2]})"
    open_end = ForecastView(end=Estimate(now + 300, now + 901, math.inf), **nothing)
    assert end_words(open_end, now) == f"done {clock(now + 901, now)[:5]} ({times[1]} or later)"
    soon = ForecastView(end=Estimate(now + 5, now + 20, math.inf), **nothing)
    assert end_words(soon, now) == f"done {clock(now + 20, now)} ({clock(now + 5, now)} or later)"
    assert forecast_line(ForecastView(end=None, **nothing)) == ""
    blind = msgspec.structs.replace(open_end, blind=True)
    assert end_words(blind, now) == f"{end_words(open_end, now)}, too little known until tasks finish"


def test_a_record_of_bags_that_do_not_pay_is_one_of_ends() -> None:
    told = list(record_lines(Record(bags=23, cost=None, end=record().end, not_counted={})))
    assert told == ["forecast accuracy: of 23 bags, 20 ends within their intervals"]
    unpaid = first(cost=None, final_end=AT + 50, end_held=True)
    assert first_forecast_lines(unpaid) == [
        f"first forecast, at {clock(AT)}, with 30 of 1,200 tasks done:"
        f" end {clock(AT + 40)} to {clock(AT + 90)}",
        f"what came: end {clock(AT + 50)} (within)",
    ]


VIEW = DonationView(
    nodes=2, donations=5, held=216.0, used=135.0, lost=12.0, reclaims=1, latency=0.25, slowest=0.5
)


def test_what_donated_nodes_were_used_for() -> None:
    held = "held 3m 36s of processor time (used 2m 15s, lost 12s), 1 reclaim"
    assert used_words(VIEW) == f"{held} in 0.25 s (at most 0.50 s)"
    assert used_words(msgspec.structs.replace(VIEW, latency=None)) == held


def test_the_lines_of_a_site() -> None:
    before = msgspec.structs.replace(VIEW, nodes=1, donations=0, idle=3, reason="max_nodes is 1")
    assert donation_lines(before) == [
        "1 donated node, 3 other idle nodes",
        "no more nodes are donated: max_nodes is 1",
    ]
    assert donation_lines(VIEW) == [f"2 donated nodes; {used_words(VIEW)}"]
