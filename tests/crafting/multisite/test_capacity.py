"""Capacities of sites as functions of time, and the level to which tasks fill them."""

from __future__ import annotations

import math

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.crafting.fits import RequestShape
from adaptor.crafting.multisite.capacity import Capacity, level, strips
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import FreeSlot, Limits, QueueState
from adaptor.resources import TaskSize
from tests.crafting.crafting_strategies import profiles, rules


def shape(
    *, runtime: float = 60, max_proc: int = 8, max_tr: int = 600, pad: float = 0, cpus: int = 1
) -> RequestShape:
    limits = Limits(max_pending_requests=4, max_proc=max_proc, max_tr=max_tr)
    return kind_of(SiteRules(limits=limits, pad=pad), 1000, runtime, cpus)


def kind_of(rules: SiteRules, processors: int, runtime: float, cpus: int = 1) -> RequestShape:
    queue = QueueState(now=0.0, processors=processors)
    return RequestShape.for_demand(rules, queue, Demand(task=TaskSize(processors=cpus), runtime=runtime))


def free(processors: int, *holds: tuple[float, float, int]) -> Profile:
    return Profile.holding(0, processors, holds)


def test_a_profile_is_cut_into_level_strips() -> None:
    found = strips([(0, 4), (10, 1), (20, 3)])
    assert sorted(found, key=lambda strip: (strip.start, strip.duration)) == [
        FreeSlot(0, 10, 3),
        FreeSlot(0, math.inf, 1),
        FreeSlot(20, math.inf, 2),
    ]


@given(profiles())
def test_strips_cover_the_profile_exactly(profile: Profile) -> None:
    cut = strips(profile.steps())
    for time, processors in profile.steps():
        assert processors == sum(s.processors for s in cut if s.start <= time < s.start + s.duration)


def test_tasks_are_finished_round_after_round() -> None:
    site = Capacity(free(4), shape(pad=5), now=0, requests=1)
    assert [site.by(time) for time in (64, 65, 124, 125, 185)] == [0, 4, 4, 8, 12]
    assert site.first == 65


def test_each_further_request_loses_the_pad_again() -> None:
    """Requests of 600 s hold 9 rounds of 60 s after 30 s."""
    site = Capacity(free(1), shape(pad=30), now=0, requests=2)
    assert site.by(600) == 9
    assert site.by(600 + 89) == 9
    assert site.by(600 + 90) == 10
    assert site.total == math.inf


def test_a_hole_too_short_for_one_task_counts_for_nothing() -> None:
    assert Capacity(free(4, (50, math.inf, 4)), shape(), now=0, requests=4).total == 0
    assert Capacity(free(4, (50, math.inf, 4)), shape(), now=0, requests=4).first == math.inf
    assert Capacity(free(4, (60, math.inf, 4)), shape(), now=0, requests=4).total == 4


def test_a_heuristic_that_always_asks_for_all_the_time_needs_holes_that_long() -> None:
    profile = free(4, (300, 900, 4))
    assert Capacity(profile, shape(), now=0, requests=4).by(300) == 20
    assert Capacity(profile, shape(), now=0, requests=4, whole_tr=True).by(300) == 0
    assert Capacity(profile, shape(), now=0, requests=4, whole_tr=True).by(960) == 4


def test_the_limits_bound_width_and_number() -> None:
    assert Capacity(free(1000), shape(max_proc=8), now=0, requests=2).by(60) == 16
    assert Capacity(free(1000), shape(max_proc=8), now=0, requests=2).by(600) == 2 * 8 * 10
    assert Capacity(free(1000), shape(max_proc=8), now=0, requests=0).total == 0
    assert Capacity(free(1000), shape(max_proc=8, cpus=9), now=0, requests=2).total == 0


def test_when_a_pilot_ends_another_request_may_be_made() -> None:
    site = Capacity(free(16), shape(), now=0, requests=1, ends=[120])
    assert [site.by(time) for time in (60, 120, 179, 180, 240)] == [8, 16, 16, 32, 48]


def test_a_task_longer_than_a_request_counts_as_one_request_of_all_the_time() -> None:
    site = Capacity(free(1), shape(runtime=9000), now=0, requests=3)
    assert [site.by(599), site.by(600), site.by(1200)] == [0, 1, 2]


def test_what_is_learned_of_lateness_moves_everything() -> None:
    site = Capacity(free(4), shape(), now=0, requests=1, delay=100)
    assert [site.by(159), site.by(160)] == [0, 4]


@given(profiles(), rules(), st.floats(0.5, 40), st.integers(1, 4), st.integers(0, 5))
def test_time_only_adds(
    profile: Profile, site_rules: SiteRules, runtime: float, cpus: int, requests: int
) -> None:
    each = Capacity(
        profile,
        kind_of(site_rules, 20, runtime, cpus),
        now=0,
        requests=requests,
    )
    done = [each.by(time) for time in range(0, 400, 7)]
    assert [*done, each.total] == sorted([*done, each.total])
    if each.total:
        assert each.by(each.first + 1e-6) > 0
        assert each.by(each.first - 1e-4) == 0


@given(profiles(), rules(), st.floats(0.5, 40), st.integers(1, 4), st.floats(0, 30))
def test_a_faster_site_could_have_done_more_at_every_instant(
    profile: Profile, site_rules: SiteRules, runtime: float, requests: int, delay: float
) -> None:
    slow = kind_of(site_rules, 20, runtime)
    base = Capacity(profile, slow, now=0, requests=requests, delay=delay)
    assume(slow.rounds(site_rules.limits.max_tr))
    for faster in (
        Capacity(profile, slow, now=0, requests=requests, delay=delay / 2),
        Capacity(profile, slow, now=0, requests=requests + 1, delay=delay),
        Capacity(
            profile, msgspec.structs.replace(slow, runtime=runtime / 2), now=0, requests=requests, delay=delay
        ),
    ):
        assert all(faster.by(time) >= base.by(time) for time in range(0, 300, 5))
        assert faster.total >= base.total


@given(profiles(), rules(), st.floats(0.5, 40), st.integers(0, 9))
def test_more_processors_could_have_done_more_at_every_instant(
    profile: Profile, site_rules: SiteRules, runtime: float, more: int
) -> None:
    """Where the limits do not cut the profile: a strip that they cut may be tiled with less waste."""
    kind = kind_of(site_rules, 20, runtime)
    wider = Profile.of_steps([(time, processors + more) for time, processors in profile.steps()])
    narrow, wide = (Capacity(each, kind, now=0, requests=100) for each in (profile, wider))
    assert all(wide.by(time) >= narrow.by(time) for time in range(0, 300, 5))
    assert wide.total >= narrow.total


@st.composite
def capacities(draw: st.DrawFn) -> dict[str, Capacity]:
    return {
        name: Capacity(
            draw(profiles()),
            kind_of(draw(rules()), 20, draw(st.integers(1, 40))),
            now=0,
            requests=draw(st.integers(0, 5)),
            delay=draw(st.integers(0, 50)),
        )
        for name in draw(st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]))
    }


@given(capacities(), st.integers(0, 300))
def test_the_shares_sum_up_and_fill_to_the_same_level(sites: dict[str, Capacity], tasks: int) -> None:
    found = level(sites, tasks, 0)
    assert found.assigned == min(tasks, sum(each.total for each in sites.values()))
    for name, each in sites.items():
        assert 0 <= found.shares[name] <= each.by(found.finish)
        if found.assigned < tasks:
            assert found.shares[name] == each.total
        elif tasks:
            assert found.shares[name] >= each.by(found.finish - 0.01), (
                "what could be done before then is done"
            )


@given(capacities(), st.integers(1, 300), st.integers(1, 50))
def test_a_site_that_gets_faster_never_gets_fewer(sites: dict[str, Capacity], tasks: int, delay: int) -> None:
    profile, kind = Profile(0, 7), shape(runtime=7, max_tr=70)
    slow = level({**sites, "b": Capacity(profile, kind, now=0, requests=3, delay=delay)}, tasks, 0)
    fast = level({**sites, "b": Capacity(profile, kind, now=0, requests=3)}, tasks, 0)
    assert fast.shares["b"] >= slow.shares["b"]
    assert fast.finish <= slow.finish or fast.assigned > slow.assigned
