"""Forecasts of a trace are calibrated by other machines, and by what had come there before they were made."""

from __future__ import annotations

import random

import pytest

from adaptor.forecast.calibration import Raw, calibrated
from adaptor.forecast.past_waits import WEIGHTS, ByPast
from adaptor.model import Estimate
from adaptor_experiments.forecasts.replayed import (
    Case,
    as_measured,
    by_others,
    by_past,
    by_right_record,
    mixed_by_past,
)


def case(machine: str, instant: float, came: float = 100.0) -> Case:
    raw = Raw(kind="start", made=0.0, unit=300.0, ends=Estimate(50.0, 100.0, 200.0))
    return Case(site=machine, machine=machine, instant=instant, raw=raw, came=came)


def test_39_quantiles_stand_for_all_scores() -> None:
    measured = as_measured([each / 100 for each in range(1000)])
    assert len(measured) == 39
    assert measured[0] == pytest.approx(0.24, abs=0.02)
    assert measured[-1] == pytest.approx(9.75, abs=0.02)


def test_only_what_had_come_by_then_is_known() -> None:
    """The second forecast is made before the first one's start, the third after it."""
    cases = [case("a", 0.0, came=5000.0), case("a", 4999.0), case("a", 5000.0), case("b", 0.0, came=90.0)]
    past, others = by_past(cases), by_others(cases)
    measured = as_measured([cases[3].score])
    assert past[1] == others[1] == calibrated(cases[1].raw, (), measured)
    assert past[2] == calibrated(cases[2].raw, [cases[0].score], measured)


def test_another_machine_teaches_nothing_of_itself() -> None:
    cases = [case("a", each, came=100.0) for each in range(50)] + [
        case("b", each, came=9e5) for each in range(50)
    ]
    found = by_others(cases)
    assert found[0].high > 9e4
    assert found[99].high < 1000


def test_a_site_that_errs_more_than_others_gets_its_90_percent_by_its_past() -> None:
    draw = random.Random(1)
    cases = [case("a", 1e4 * n, came=100.0 * draw.lognormvariate(0.0, 0.2)) for n in range(400)]
    cases += [case("b", 1e4 * n, came=100.0 * draw.lognormvariate(0.0, 2.0)) for n in range(400)]
    held = [
        [found.holds(each.came) for found, each in list(zip(way(cases), cases, strict=True))[600:]]
        for way in (by_others, by_past)
    ]
    assert sum(held[0]) / 200 < 0.7
    assert 0.85 <= sum(held[1]) / 200 <= 0.95


def test_past_waits_count_once_they_have_come_nearer() -> None:
    """The plan says 100 s, all wait for 5,000 s, as like jobs did."""
    cases = [case("a", 1e4 * each, came=5000.0) for each in range(80)]
    past = ByPast(Estimate(4000.0, 5000.0, 6000.0), Estimate(1.0, 1.0, 1.0))
    found = mixed_by_past(cases, [past] * 80)
    values = [each.raw.ends.value for each in found]
    assert values[:30] == [100.0] * 30, "30 starts are the fewest"
    assert values[30:] == pytest.approx([5000.0] * 50)
    assert mixed_by_past(cases, [None] * 80) == cases
    without_a_plan = mixed_by_past(cases, [past] * 80, [each for each in WEIGHTS if not each[0]])
    assert without_a_plan[0].raw.ends.value == pytest.approx(5000.0)


def test_a_record_is_of_what_had_started_by_then() -> None:
    cases = [case("a", 1e4 * each) for each in range(60)]
    missed, held = Estimate(0.0, 1.0, 2.0), Estimate(0.0, 100.0, 200.0)
    assert by_right_record(cases, [held] * 60) == [True] * 60
    assert by_right_record(cases, [missed] * 60) == [True, *[False] * 59], "nothing is known at first"
