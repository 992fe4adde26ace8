"""Candidates in one free slot, by their processors."""

from __future__ import annotations

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.crafting.adaptive import work_of
from adaptor.crafting.places import CraftingSituation
from adaptor.model import FreeSlot
from tests.crafting.crafting_strategies import profiles, situations


@given(situations(), st.integers(0, 40), st.one_of(st.integers(1, 200), st.just(math.inf)))
def test_fewer_processors_never_have_more_throughput(
    given: CraftingSituation, wait: int, duration: float
) -> None:
    assume(given.remaining_tasks)
    work = work_of(given)
    slot = FreeSlot(given.queue.now + wait, duration, 20)
    found = [work.candidate(slot, p) for p in range(21)]
    throughputs = [candidate.throughput if candidate else 0.0 for candidate in found]
    assert throughputs == sorted(throughputs)


@given(situations(), st.data())
def test_a_candidate_without_the_least_throughput_is_none(
    given: CraftingSituation, data: st.DataObject
) -> None:
    assume(given.remaining_tasks)
    work, profile = work_of(given), data.draw(profiles())
    least = data.draw(st.floats(0.0, 3.0))
    for slot in given.free.profile(work.shape.chunk).free_slots():
        known = work.candidate_within(slot, profile)
        wanted = known if known and known.throughput > least else None
        assert work.candidate_within(slot, profile, least) == wanted
