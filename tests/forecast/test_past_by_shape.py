"""Waits of jobs of the same shape."""

from __future__ import annotations

import math

from adaptor.forecast.past_by_shape import PastByShape
from adaptor.model import Estimate


def test_a_shape_is_a_power_of_two_of_processors_and_of_time_and_gpus_or_none() -> None:
    past = PastByShape()
    assert past.like(4, 3600.0) is None
    for wait in range(1, 21):
        past.started(4, 3600.0, wait=float(wait))
        past.started(4, 3600.0, 1, wait=100.0)
    assert past.like(5, 4000.0) == Estimate(1.0, 10.0, 19.0)
    assert past.like(4, 3600.0, 2) == Estimate(100.0, 100.0, 100.0)
    new = past.like(64, math.inf)
    assert new is not None
    assert new.high == 100.0, "of all, where the shape is new"
