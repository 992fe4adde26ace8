"""A division that keeps to where the tasks of a bag shall run."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.multisite.capacity import TargetShares
from adaptor.crafting.multisite.division import divide
from adaptor.crafting.places import Place
from adaptor.crafting.situation import TaskGroup
from tests.examples import examples

from .division_sites import bag, of_bag, site, situations


def target(**shares: int) -> TargetShares:
    return TargetShares(shares=shares, seconds=120.0, reason="cheapest within 2m: so and so")


def shares(
    sites: dict[str, list[Place]], targets: dict[int, TargetShares | None], *groups: TaskGroup
) -> dict[str, list[int]]:
    return {name: part.uncovered for name, part in divide(sites, groups, targets).items()}


def test_target_shares_count_and_not_who_is_done_first() -> None:
    sites = {"near": site(), "far": site()}
    mine = of_bag(bag(100), 7)
    assert shares(sites, {7: target(near=10, far=90)}, mine) == {"near": [10], "far": [90]}
    assert shares(sites, {8: target(near=10, far=90)}, mine) == {"near": [50], "far": [50]}


def test_why_says_the_target_shares() -> None:
    sites = {"near": site(), "far": site()}
    parts = divide(sites, [of_bag(bag(100), 7)], {7: target(far=100)})
    assert parts["far"].reason == "gets 100 of 100 waiting tasks; cheapest within 2m: so and so"
    assert parts["near"].reason == "gets none of 100 waiting tasks; cheapest within 2m: so and so"


def test_what_a_site_cannot_do_is_left_for_later_requests() -> None:
    sites = {"near": site(closed="it fails"), "far": site(requests=1)}
    found = shares(sites, {7: target(near=500, far=2000)}, of_bag(bag(2500), 7))
    assert found == {"near": [0], "far": [16 * 60]}


@examples(150)
@given(situations(), st.lists(st.integers(0, 150), min_size=3, max_size=3))
def test_nobody_gets_more_than_the_target_nor_than_it_may_ask_for(
    drawn: tuple[dict[str, list[Place]], tuple[TaskGroup, ...]], wanted: list[int]
) -> None:
    sites, groups = drawn
    groups = tuple(of_bag(group, number) for number, group in enumerate(groups))
    targets = {0: TargetShares(shares=dict(zip(sites, wanted, strict=False)), seconds=math.inf, reason="so")}
    parts = divide(sites, groups, targets)
    plain = divide(sites, groups)
    for name, standing in sites.items():
        mine = parts[name].uncovered[0]
        assert 0 <= mine <= targets[0].shares[name]
        if mine:
            assert name in groups[0].at
            shape = standing[0].shape(groups[0].at[name])
            most = shape.holds(shape.widest, shape.rules.limits.max_tr)
            assert mine <= standing[0].site.requests_left * most
        assert parts[name].needless == plain[name].needless
    assert sum(part.uncovered[0] for part in parts.values()) <= groups[0].waiting
