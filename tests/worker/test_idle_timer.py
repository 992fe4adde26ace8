"""When a worker leaves of its own accord."""

from __future__ import annotations

import math

from adaptor.protocol.messages import Leaving, Welcome
from adaptor.worker.idle_timer import LAST_SECONDS, Vigil, grace_left, leave_at

TERMS = Welcome(heartbeat=1, idle_timeout=10, grace_time=5, patience=100)


def test_without_work_it_leaves_after_the_idle_timeout() -> None:
    vigil = Vigil()
    vigil.note(0.0, idle=True, connected=True)
    vigil.note(9.0, idle=True, connected=True)
    assert vigil.ends(TERMS) == 10.0
    assert vigil.verdict(9.9, TERMS) is None
    assert vigil.verdict(10.0, TERMS) is Leaving.IDLE


def test_work_starts_the_wait_anew() -> None:
    vigil = Vigil()
    vigil.note(0.0, idle=True, connected=True)
    vigil.note(5.0, idle=False, connected=True)
    assert vigil.ends(TERMS) == math.inf
    assert vigil.verdict(1000.0, TERMS) is None
    vigil.note(7.0, idle=True, connected=True)
    assert vigil.ends(TERMS) == 17.0


def test_without_the_daemon_its_patience_counts() -> None:
    vigil = Vigil()
    vigil.note(0.0, idle=True, connected=True)
    vigil.note(8.0, idle=True, connected=False)
    assert vigil.verdict(50.0, TERMS) is None
    assert vigil.verdict(108.0, TERMS) is Leaving.ALONE
    vigil.note(50.0, idle=True, connected=True)
    assert vigil.ends(TERMS) == 60.0


def test_the_last_seconds_of_a_pilot() -> None:
    assert leave_at(100.0, 60.0) == 100.0 - LAST_SECONDS
    assert leave_at(100.0, 1.0) == 99.0
    assert leave_at(math.inf, 10.0) == math.inf
    assert grace_left(97.0, 100.0, 10.0) == 3.0
    assert grace_left(0.0, math.inf, 10.0) == 10.0
    assert grace_left(200.0, 100.0, 10.0) == 0.0
