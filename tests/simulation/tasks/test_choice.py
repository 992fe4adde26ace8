"""The choice of donated processors in numbers, against the decision that the daemon asks for."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.deciding import decide
from adaptor.donation.fitting import room
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
from adaptor.simulation.donation.processors import OWNER, PLANNED, ROWS, SINCE, USED, plan_lot
from adaptor.simulation.kernels import NEVER
from adaptor.simulation.tasks import kernels as k
from adaptor.simulation.tasks.choice import to_use

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
    lot = np.full((ROWS, count), -1, np.int64)
    for p in range(count):
        lot[SINCE, p] = NOW - draw(st.sampled_from([0, 1, 60, 3600]) | st.integers(0, NOW))
        lot[PLANNED, p] = draw(st.just(NEVER) | st.integers(NOW + 1, NOW + 20_000))
        kind = draw(st.sampled_from(["idle", "idle", "taken", "used"]))
        if kind == "taken":
            lot[OWNER, p] = 7
        if kind == "used":
            lot[USED, p] = NOW - 5
    return lot


def node(lot, p) -> NodeView:
    planned = int(lot[PLANNED, p])
    return NodeView(
        name=str(p),
        processors=1,
        use=NodeUse.TAKEN if lot[OWNER, p] >= 0 else NodeUse.IDLE,
        since=float(lot[SINCE, p]),
        planned=math.inf if planned == NEVER else float(planned),
        donated=DonatedUse(since=float(lot[USED, p]), busy=1) if lot[USED, p] >= 0 else None,
    )


demands = st.builds(
    DonationDemand,
    waiting=st.integers(1, 15),
    needs=st.sampled_from([0.0, 30.0, 5000.0]) | st.integers(0, 50_000).map(float),
)
held = st.none() | st.integers(NOW - 10, NOW + 50_000).map(float)


@given(
    lots(),
    hazards(),
    demands,
    demands,
    held,
    st.sampled_from(["mixed", "transparent"]),
    st.integers(0, 2000),
    st.sampled_from(["likely", "all"]),
)
def test_the_kernel_uses_what_the_core_uses(lot, hazard, first, second, held, allocation, useful, choose):
    rules = DonationRules(choose=choose, useful_time=float(useful))
    wanted = [msgspec.structs.replace(first, allocation=allocation)]
    if allocation == "mixed" and held is not None:
        wanted.append(msgspec.structs.replace(second, held_until=held))
    view = DonationState(
        now=float(NOW),
        nodes=tuple(node(lot, p) for p in range(lot.shape[1])),
        rules=rules,
        demands=tuple(wanted),
    )
    uses = [use for use in decide(view, hazard) if isinstance(use, UseNodes)]
    names = {int(name) for use in uses for name in use.nodes}
    assert {*to_use(lot, NOW, hazard, rules, wanted).tolist()} == names


@given(hazards(), st.integers(0, 10**7), st.integers(-10, 10**7) | st.just(NEVER), st.floats(0.01, 1))
def test_a_donated_processor_has_room_for_the_same_tasks(hazard, age, until_planned, probability):
    planned = math.inf if until_planned == NEVER else float(until_planned)
    wanted = room(hazard, float(age), planned, probability)
    found = k.room(k.numbers(hazard), float(age), float(until_planned), -math.log(probability))
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-6)


@given(st.lists(st.booleans(), min_size=1, max_size=10), st.lists(st.integers(0, 10), max_size=8))
def test_the_plan_takes_the_first_processors(idle, frees):
    lot = np.full((ROWS, len(idle)), -1, np.int64)
    lot[OWNER, [not each for each in idle]] = 3
    count = sum(idle)
    free = np.array([count, *frees], np.int64)
    times = np.arange(len(free)) * 10
    plan_lot(lot, times, free)
    places = [p for p in range(len(idle)) if idle[p]]
    for rank, p in enumerate(places):
        sooner = [int(time) for time, left in zip(times, free, strict=True) if left < count - rank]
        assert lot[PLANNED, p] == min(sooner, default=NEVER)
