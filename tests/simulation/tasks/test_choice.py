"""The choice of donated processors in numbers, against the decision that the daemon asks for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.deciding import decide
from adaptor.donation.fitting import least_probability, room
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import (
    DonatedUse,
    DonationDemand,
    DonationRules,
    DonationState,
    NodeUse,
    NodeView,
    UseNodes,
)
from adaptor.simulation.donation import kernels as k
from adaptor.simulation.donation.choice import numbers, to_use
from adaptor.simulation.kernels import NEVER

NOW = 100_000
periods = st.lists(st.tuples(st.integers(0, 90_000), st.integers(0, 90_000), st.booleans()), max_size=20)


@st.composite
def hazards(draw):
    learner = IdleLearner()
    for before, length, taken in draw(periods):
        learner.saw(before, before + length, taken=taken)
    return learner.hazard


@st.composite
def lots(draw):
    """Processors: idle, planned, taken or in use, at random."""
    count = draw(st.integers(1, 12))
    lot = np.full((k.ROWS, count), -1, np.int64)
    lot[k.END] = NEVER
    for p in range(count):
        lot[k.SINCE, p] = NOW - draw(st.sampled_from([0, 1, 60, 3600]) | st.integers(0, NOW))
        lot[k.PLANNED, p] = draw(st.just(NEVER) | st.integers(NOW + 1, NOW + 20_000))
        kind = draw(st.sampled_from(["idle", "idle", "taken", "used"]))
        if kind == "taken":
            lot[k.OWNER, p] = 7
        if kind == "used":
            lot[k.USED, p], lot[k.TASK, p], lot[k.END, p] = NOW - 5, p, NOW + 50
    return lot


def node(lot, p) -> NodeView:
    planned = int(lot[k.PLANNED, p])
    return NodeView(
        name=str(p),
        processors=1,
        use=NodeUse.TAKEN if lot[k.OWNER, p] >= 0 else NodeUse.IDLE,
        since=float(lot[k.SINCE, p]),
        planned=math.inf if planned == NEVER else float(planned),
        donated=DonatedUse(since=float(lot[k.USED, p]), busy=1) if lot[k.USED, p] >= 0 else None,
    )


@given(
    lots(),
    hazards(),
    st.integers(1, 15),
    st.sampled_from([0, 30, 5000]) | st.integers(0, 50_000),
    st.sampled_from(["mixed", "transparent"]),
    st.integers(0, 2000),
    st.sampled_from(["likely", "all"]),
)
def test_the_kernel_uses_what_the_core_uses(lot, hazard, waiting, needs, allocation, useful, choose):
    rules = DonationRules(choose=choose, useful_time=float(useful))
    view = DonationState(
        now=float(NOW),
        nodes=tuple(node(lot, p) for p in range(lot.shape[1])),
        rules=rules,
        demands=(DonationDemand(waiting=waiting, needs=float(needs), allocation=allocation),),
    )
    wanted = {int(name) for each in decide(view, hazard) if isinstance(each, UseNodes) for name in each.nodes}
    least = least_probability(allocation, rules)
    level = math.inf if least <= 0 else -math.log(least)
    found = to_use(lot, NOW, numbers(hazard), level, rules.useful_time, waiting, needs)
    assert {*found.tolist()} == wanted


@given(hazards(), st.integers(0, 10**7), st.integers(-10, 10**7) | st.just(NEVER), st.floats(0.01, 1))
def test_a_donated_processor_has_room_for_the_same_tasks(hazard, age, until_planned, probability):
    planned = math.inf if until_planned == NEVER else float(until_planned)
    wanted = room(hazard, float(age), planned, probability)
    found = k.room(numbers(hazard), float(age), float(until_planned), -math.log(probability))
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-6)


@given(st.lists(st.booleans(), min_size=1, max_size=10), st.lists(st.integers(0, 10), max_size=8))
def test_the_plan_takes_the_first_processors(idle, frees):
    lot = np.full((k.ROWS, len(idle)), -1, np.int64)
    lot[k.OWNER, [not each for each in idle]] = 3
    count = sum(idle)
    free = np.array([count, *frees], np.int64)
    times = np.arange(len(free)) * 10
    k.plan_ahead(lot, times, free)
    places = [p for p in range(len(idle)) if idle[p]]
    for rank, p in enumerate(places):
        sooner = [int(time) for time, left in zip(times, free, strict=True) if left < count - rank]
        assert lot[k.PLANNED, p] == min(sooner, default=NEVER)
