"""Where nothing is configured, a site's requests are polite."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.policy import Policy, PolicyKeys
from adaptor.config.schema import LimitsConfig
from adaptor.model import Bound
from adaptor.units import Duration
from backends.ceilings import FEWEST, Ceilings, limits_of, polite_processors, within_policy


def ceilings(whole: int, node: int = 1, allowed: float = math.inf) -> Ceilings:
    return Ceilings(
        requests=Bound(math.inf, "no limit"),
        processors=Bound(min(allowed, whole), "all processors"),
        seconds=Bound(math.inf, "no limit"),
        whole=whole,
        node=node,
    )


@pytest.mark.parametrize(
    ("known", "requests", "processors", "why"),
    [
        (ceilings(1024, 32), 4, 128, "4 such requests hold half of 1024 processors"),
        (ceilings(1024, 32), 1, 512, "1 such requests hold half of 1024 processors"),
        (ceilings(1000, 48), 4, 144, "4 such requests hold half of 1000 processors, in whole nodes"),
        (ceilings(512, 128), 4, 128, "4 such requests hold half of 512 processors, in whole nodes"),
        (ceilings(24, 4), 4, 16, "16 processors at least"),
        (ceilings(16, 4), 4, 16, "all processors"),
        (ceilings(4096, 64, allowed=64), 4, 64, "all processors"),
    ],
)
def test_the_share_and_why(known: Ceilings, requests: int, processors: int, why: str) -> None:
    assert polite_processors(known, requests) == Bound(processors, why)
    assert limits_of(known, requests).max_proc == processors


def test_a_site_is_described_within_the_policy_and_says_its_line() -> None:
    keys = PolicyKeys(limits=LimitsConfig(max_pending_requests=2, max_proc=500, max_tr=Duration(1e9)))
    policy = Policy(keys, {"$.limits.max_proc": 3}, "policy.yaml")
    known = within_policy(ceilings(4096, 32), policy)
    assert known.processors == Bound(500, "policy.yaml:3")
    assert known.requests.value == 2
    assert known.seconds == ceilings(4096, 32).seconds, "what would be chosen is less"
    assert within_policy(ceilings(512, 32), policy).processors.source == "all processors"


@given(
    nodes=st.integers(1, 2000),
    node=st.integers(1, 256),
    requests=st.integers(1, 50),
    allowed=st.integers(1, 10**6),
)
def test_together_they_hold_half_but_for_whole_nodes(
    nodes: int, node: int, requests: int, allowed: int
) -> None:
    whole = nodes * node
    polite = polite_processors(ceilings(whole, node, allowed), requests).value
    assert 1 <= polite <= min(whole, allowed)
    assert polite >= min(node, whole, allowed), "a task that fits a node fits a request"
    if polite > max(node, FEWEST):
        assert polite * requests <= whole / 2 + requests * node
