"""A site's own words for nodes, and what becomes of them in requests."""

from __future__ import annotations

import pytest

from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.pbs.constraints import openpbs_traits
from backends.pbs.openpbs.submitting import arguments_of
from tests.backends.orders import order
from tests.backends.pbs.pbs_rows import pbs_shape


@pytest.mark.parametrize(
    ("constraint", "nodelist", "traits"),
    [
        (None, None, {}),
        ("bigmem", None, {"bigmem": "True"}),
        ("gpu_type=a100 & ib,site=b/2", None, {"gpu_type": "a100", "ib": "True", "site": "b/2"}),
        ("fast", "n3.hpc.org", {"fast": "True", "host": "n3.hpc.org"}),
    ],
)
def test_openpbs(constraint: str | None, nodelist: str | None, traits: dict[str, str]) -> None:
    assert openpbs_traits(constraint, nodelist) == traits


@pytest.mark.parametrize(
    ("constraint", "nodelist", "exclude", "problem"),
    [
        ("a|b", None, None, r"constraint: a\|b: PBS can be asked for nodes that have all"),
        ("[a&b]", None, None, r"constraint: \[a"),
        ("a&", None, None, "constraint: a word is missing"),
        ("a:ncpus=9", None, None, "constraint: a:ncpus=9"),
        ("a+1", None, None, "constraint: "),
        (None, "n[1-3]", None, r"nodelist: n\[1-3\]: PBS can be asked for one node only"),
        (None, "n1,n2", None, "nodelist: "),
        (None, None, "n7", "exclude: n7: PBS cannot be asked to leave nodes out"),
    ],
)
def test_what_pbs_cannot_be_asked_for_is_told_with_the_way_out(
    constraint: str | None,
    nodelist: str | None,
    exclude: str | None,
    problem: str,
) -> None:
    with pytest.raises(SchedulerError, match=problem) as raised:
        openpbs_traits(constraint, nodelist, exclude)
    assert "name that" in str(raised.value) or constraint is not None


def test_requests_ask_for_them() -> None:
    shape = pbs_shape(6, 1, traits=(("fast", "True"), ("host", "n3")))
    found = arguments_of(order(6), SiteConfig(backend="pbs"), shape, order(6).directory)
    assert "select=6:ncpus=1:mpiprocs=1:fast=True:host=n3" in found
