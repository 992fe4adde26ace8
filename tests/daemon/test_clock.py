"""The daemon's clock passes evenly, whatever becomes of the time of day."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaptor.daemon.clock import FOLLOWED, SteadyClock

DAY = 86_400.0
ROUNDING = 1e-3
"""Seconds: sums of epoch seconds are rounded to about 2e-7 s each."""


class Machine:
    """Both clocks of a machine."""

    def __init__(self) -> None:
        self.wall, self.monotonic = 1_700_000_000.0, 50.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.monotonic)

    def runs(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds


SETTINGS = st.floats(-400 * DAY, 400 * DAY).filter(lambda step: abs(step) > FOLLOWED + 1)


@given(st.lists(st.tuples(st.floats(0.0, 10_000.0), SETTINGS), max_size=8))
@example([(4.0, 0.1 * DAY), (1 / 3, -0.1 * DAY + 4.0)])
@example([(0.0, 10.0), (0.0, -7.5)])
def test_time_passes_evenly_until_the_time_of_day_is_adopted(steps: list[tuple[float, float]]) -> None:
    machine = Machine()
    began, passed, ahead = machine.clock(), 0.0, 0.0
    for seconds, step in steps:
        machine.runs(seconds)
        machine.wall += step
        passed, ahead = passed + seconds, ahead + step
        if abs(ahead) > FOLLOWED + ROUNDING:
            assert machine.clock() - began == pytest.approx(passed, abs=ROUNDING)
            assert machine.clock.step == pytest.approx(ahead, abs=ROUNDING)
        elif abs(ahead) < FOLLOWED - ROUNDING:  # it was set right again
            assert machine.clock.step == 0.0
    machine.clock.adopt()
    assert machine.clock() == pytest.approx(machine.wall, rel=0, abs=ROUNDING)
    assert machine.clock.step == 0.0


@given(st.floats(-FOLLOWED, FOLLOWED))
def test_small_steps_are_followed(step: float) -> None:
    machine = Machine()
    machine.wall += step
    assert (machine.clock(), machine.clock.step) == (machine.wall, 0.0)


def test_a_suspended_machine_is_a_step_forward() -> None:
    machine = Machine()
    machine.wall += 7200.0
    assert (machine.clock(), machine.clock.step) == (1_700_000_000.0, 7200.0)


def test_a_process_that_is_stopped_between_both_clocks_sees_no_step() -> None:
    machine = Machine()
    stops = iter([30.0])

    def wall() -> float:
        machine.runs(next(stops, 0.0))
        return machine.wall

    machine.clock._wall = wall
    assert machine.clock.step == 0.0
    assert machine.clock() == 1_700_000_030.0
