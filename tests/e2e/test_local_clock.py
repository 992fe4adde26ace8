"""The time of day is set, by an hour, by 400 days, back and forth, while bags run and between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.lab import Lab, exactly_one_result_each
from tests.living import until

CONFIG = """
sites:
  here:
    backend: local
    processors: 2
    limits: {max_pending_requests: 2, max_proc: 2, max_tr: 1h}
journal: {keep: 90d}
"""
HOUR, DAY = 3600, 86_400


class Clock:
    """Of the lab's processes."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = lab.root / "ahead"
        self.set(0)
        monkeypatch.setenv("SET_CLOCK", str(self._ahead))
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "set_clock"))

    def set(self, seconds: float) -> None:
        """Ahead of this machine's, in one step."""
        new = self._ahead.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._ahead)


@pytest.mark.parametrize("settings", [(-HOUR, HOUR), pytest.param((400 * DAY, 0), marks=pytest.mark.nightly)])
def test_bags_go_on_whatever_the_clock_says(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, settings: tuple[float, float]
) -> None:
    clock = Clock(lab, monkeypatch)
    lab.configure(CONFIG)
    bags = 0
    for times, seconds in enumerate(settings, 1):
        lab.bag([f"{lab.hold(f'gate{bags}')}; echo $ADAPTOR_BAG_ID.$ADAPTOR_TASK_ID >> runs"] * 4)
        bags = lab.submit("tasks.bag")
        until(lambda bag=bags: lab.status(bag)["running"] == 2, "two tasks run")
        clock.set(seconds)
        lab.release(f"gate{bags - 1}")
        lab.wait(bags)
        lab.bag(["echo $ADAPTOR_BAG_ID.$ADAPTOR_TASK_ID >> runs"] * 4, "after.bag")
        bags = lab.submit("after.bag")
        lab.wait(bags)
        until(  # it looks once a second; both bags may be done by then
            lambda times=times: lab.log().count("the daemon begins again") == times, "the daemon notices it"
        )
    for bag in range(1, bags + 1):
        exactly_one_result_each(lab, bag, 4)
    ran = (lab.work / "runs").read_text().split()
    assert sorted(ran) == sorted(f"{bag}.{task}" for bag in range(1, bags + 1) for task in range(4))
    assert "has been silent" not in lab.log()
    until(lambda: all(pilot["ended"] for pilot in lab.pilots()), "all pilots have ended")
    charged = [pilot["used"] + pilot["wasted"] for pilot in lab.pilots()]
    assert max(charged) < 2 * 120, "processor-seconds by the monotonic clock"
