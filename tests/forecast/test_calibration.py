"""Calibrated intervals hold as often as they say, whatever the errors of past forecasts look like."""

from __future__ import annotations

import math
import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.forecast.calibration import ENOUGH, NEWEST, Kind, Raw, calibrated, kind_of_end, score
from adaptor.forecast.measured_scores import MEASURED
from adaptor.model import Estimate

RAW = Raw(kind="late", made=1000.0, unit=60.0, ends=Estimate(1500.0, 2000.0, 4000.0))


def drawn(draw: random.Random) -> tuple[Raw, float]:
    """A forecast whose raw interval is far too narrow, and what came."""
    value = 60.0 * math.exp(draw.uniform(0.0, 6.0))
    spread = draw.uniform(1.0, 3.0)
    ends = Estimate(1000 + value / spread, 1000 + value, 1000 + value * spread)
    return msgspec.structs.replace(RAW, ends=ends), 1000 + value * math.exp(draw.gauss(0.3, 1.0))


def test_nine_of_ten_intervals_hold_that_are_made_from_the_forecasts_before() -> None:
    draw, scores, held = random.Random(1), list[float](), 0
    for number in range(1200):
        raw, came = drawn(draw)
        if number >= 200:
            held += calibrated(raw, scores, ()).holds(came)
        scores.append(score(raw, came))
    assert 0.88 <= held / 1000 <= 0.92


@given(st.lists(st.floats(-3, 3), min_size=ENOUGH + 1, max_size=60), st.integers(0, 2**32))
def test_of_any_forecasts_each_is_held_by_what_the_others_say_in_90_percent(
    scores: list[float], seed: int
) -> None:
    """The theorem: any of n + 1 exchangeable scores is as likely as another to be the new one."""
    draw = random.Random(seed)
    raws = [drawn(draw)[0] for _ in scores]
    held = 0
    for place, (raw, its) in enumerate(zip(raws, scores, strict=True)):
        others = scores[:place] + scores[place + 1 :]
        found = calibrated(raw, others, ())
        low, high = score(raw, found.low), score(raw, found.high)
        floor = score(raw, raw.made)
        held += low - 1e-6 <= max(floor, its) <= high + 1e-6
    assert held >= 0.9 * len(scores)


@given(scores=st.lists(st.floats(-2, 2), min_size=ENOUGH, max_size=200))
def test_the_ends_are_the_quantiles_of_the_definition(scores: list[float]) -> None:
    """The least score that enough of n + 1 do not exceed, and the greatest that few of n + 1 do not reach."""
    raw, below, above = RAW, 0.025, 0.075
    found, most = calibrated(raw, scores, ()), len(scores) + 1
    high = min(each for each in scores if sum(other <= each for other in scores) >= (1 - above) * most - 1e-9)
    lows = [each for each in scores if sum(other < each for other in scores) + 1 <= below * most + 1e-9]
    assert score(raw, found.high) == pytest.approx(max(0.0, high), abs=1e-6)
    low = min(0.0, max(lows, default=-math.inf))
    assert score(raw, found.low) == pytest.approx(max(score(raw, raw.made), low), abs=1e-6)


@given(st.integers(60, 200), st.integers(0, 2**32))
def test_the_interval_is_that_of_a_reference_package(past: int, seed: int) -> None:
    """Of crepes (Boström), from residuals on the logarithmic scale and the scale of each forecast."""
    draw = random.Random(seed)
    came = [drawn(draw) for _ in range(past)]
    scale = [_scale(raw, at) for raw, at in came]
    residuals = [_log(raw, at) - _log(raw, raw.ends.value) for raw, at in came]
    from crepes import ConformalPredictiveSystem  # takes seconds to import

    reference = ConformalPredictiveSystem().fit(np.array(residuals), sigmas=np.array(scale))
    raw = drawn(draw)[0]
    found = calibrated(raw, [score(*each) for each in came], ())
    value = np.array([_log(raw, raw.ends.value)])
    sides = {end: np.array([_scale(raw, at)]) for end, at in (("low", raw.made), ("high", math.inf))}
    low = reference.predict_percentiles(value, sigmas=sides["low"], lower_percentiles=2.5).item()
    high = reference.predict_percentiles(value, sigmas=sides["high"], higher_percentiles=92.5).item()
    assert _log(raw, found.low) == pytest.approx(max(0.0, min(low, value[0])))
    assert _log(raw, found.high) == pytest.approx(max(high, value[0]))


def _log(raw: Raw, at: float) -> float:
    return math.log1p((at - raw.made) / raw.unit)


def _scale(raw: Raw, at: float) -> float:
    """Of the side where a time lies: the raw interval there, and one."""
    end = raw.ends.high if at > raw.ends.value else raw.ends.low
    return 1 + abs(_log(raw, end) - _log(raw, raw.ends.value))


def test_a_score_says_where_between_the_raw_ends_the_truth_came() -> None:
    assert score(RAW, 2000.0) == 0
    assert -1 < score(RAW, 1500.0) < 0 < score(RAW, 4000.0) < 1
    assert score(RAW, 1000.0) < score(RAW, 1400.0)
    assert score(RAW, 8000.0) > score(RAW, 5000.0)
    assert math.isfinite(score(RAW, math.inf))


@given(
    st.sampled_from(sorted(MEASURED)),
    st.lists(st.floats(0, 1e9), min_size=3, max_size=3),
    st.lists(st.floats(-100, 100), max_size=50),
    st.floats(1, 3600),
)
def test_every_interval_lies_in_the_future_around_its_value(
    kind: Kind, ends: list[float], own: list[float], unit: float
) -> None:
    raw = Raw(kind=kind, made=0.0, unit=unit, ends=Estimate(*sorted(ends)))
    found = calibrated(raw, own)
    assert 0 <= found.low <= found.value <= found.high < math.inf
    assert found.value == raw.ends.value


def test_what_is_not_foreseen_stays_open() -> None:
    raw = msgspec.structs.replace(RAW, ends=Estimate(1500.0, 2000.0, math.inf))
    assert calibrated(raw).high == math.inf
    assert score(raw, 1e8) > 0


def test_the_record_of_the_site_takes_over_from_the_measured_scores() -> None:
    """A site whose forecasts come true gets narrow intervals, one whose queue changes wide ones again."""
    new, good = calibrated(RAW), calibrated(RAW, [0.0] * NEWEST)
    assert (good.high - good.low) < 0.1 * (new.high - new.low)
    changed = calibrated(RAW, [0.0] * NEWEST + [1.5] * NEWEST)
    assert changed.high > new.high


def test_forecasts_that_err_alike_are_of_a_kind() -> None:
    kinds = [kind_of_end(finished, 100, alone=False) for finished in (0, 1, 25, 26, 99)]
    assert kinds == ["first", "early", "early", "late", "late"]
    assert kind_of_end(0, 100, alone=True) == "alone first"
    assert set(MEASURED) >= {kind_of_end(n, 100, alone=alone) for n in (0, 1, 99) for alone in (True, False)}


def test_measured_scores_are_in_order() -> None:
    assert all(list(scores) == sorted(scores) for scores in MEASURED.values())
