"""The daemon's clock passes evenly, whatever becomes of the time of day."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.daemon.clock import FOLLOWED, SteadyClock

DAY = 86_400.0


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
def test_time_passes_evenly_until_the_time_of_day_is_adopted(steps: list[tuple[float, float]]) -> None:
    machine = Machine()
    began, passed, ahead = machine.clock(), 0.0, 0.0
    for seconds, step in steps:
        machine.runs(seconds)
        machine.wall += step
        passed, ahead = passed + seconds, ahead + step
        if abs(ahead) > FOLLOWED + 1:
            assert abs(machine.clock() - began - passed) < 1e-3
            assert abs(machine.clock.step - ahead) < 1e-3
        else:  # it was set right again
            assert machine.clock.step == 0.0
    machine.clock.adopt()
    assert (machine.clock(), machine.clock.step) == (machine.wall, 0.0)


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
