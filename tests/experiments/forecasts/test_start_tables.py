"""The tables of starts: errors, ratios, ranks and cover."""

from __future__ import annotations

import math

import msgspec

from adaptor_experiments.forecasts.start_tables import (
    MEASURES,
    auc,
    cover_table,
    measures,
    near_table,
    remarks,
)
from adaptor_experiments.forecasts.starts import Start

ROW = Start(
    trace="a", scheduler="easy", job=0, submitted=0, processors=1, limit=60, ahead=0, wait=0.0, planned=0.0,
    low=0.0, value=0.0, high=0.0, bound=None, middle=None,
)  # fmt: skip


def test_auc_is_the_chance_that_a_quick_start_is_ranked_first() -> None:
    assert auc([1, 2, 3, 4], [True, True, False, False]) == 1.0
    assert auc([4, 3, 2, 1], [True, True, False, False]) == 0.0
    assert auc([1, 1, 1, 1], [True, False, True, False]) == 0.5
    assert auc([math.nan, 1.0], [False, True]) == 1.0
    assert math.isnan(auc([1.0], [True]))


def test_the_tables_say_how_near_and_how_often() -> None:
    rows = [
        msgspec.structs.replace(
            ROW, job=each, submitted=1000 * each, wait=wait, planned=wait + 700, bound=500.0, middle=9.0
        )
        for each, wait in enumerate([0.0, 30.0, 500.0, 4000.0] * 30)
    ]
    near = {line[2]: line[3:] for line in near_table(rows)}
    assert near["drawn"][:4] == ("120", "50%", "75%", "75%")
    assert near["planned"][:4] == ("120", "0%", "0%", "100%")
    cover = {line[2]: line for line in cover_table(rows)}
    assert cover["binomial bound"][5] == "75.0%"
    assert float(cover["by the site's past"][3].rstrip("%")) > float(cover["drawn"][3].rstrip("%"))


def test_ratios_count_waits_of_less_than_a_minute_as_one() -> None:
    told, waits = [0.0, 60.0, 600.0, None], [30.0, 150.0, 6000.0, 7.0]
    found = dict(zip(MEASURES, measures(told, waits), strict=True))
    assert found["factor 2"] == "25.0%"
    assert found["factor 3"] == "50.0%"
    assert found["MSE of log10"] == f"{(math.log10(2.5) ** 2 + 1) / 3:.2f}", "of those that are forecast"


def test_starts_behind_the_plan_are_said_of_a_recorded_trace() -> None:
    rows = [msgspec.structs.replace(ROW, scheduler="recorded", wait=wait) for wait in (0.0, 500.0)]
    told = [*remarks(rows, {("a", "recorded"): ["no users"]})]
    assert told[0] == "a, recorded: no users"
    assert told[1].startswith("a, recorded: 1 of 2 jobs started later than if all had run")
    assert not [*remarks([ROW], {})]
