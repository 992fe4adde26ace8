"""What withdrawing costs by the settings of a PBS server."""

from __future__ import annotations

import pytest

from backends.pbs.rows import PbsServer


@pytest.mark.parametrize(
    ("formula", "counts", "loses"),
    [
        ("", True, True),
        ("", False, True),
        ("eligible_time * 0.1 + ncpus", True, True),
        ("eligible_time * 0.1 + ncpus", False, False),
        ("queue_priority", True, False),
    ],
)
def test_a_request_loses_its_place_where_waiting_gains_one(formula: str, counts: bool, loses: bool) -> None:
    server = PbsServer(name="s", version="1", formula=formula, counts_eligible_time=counts)
    assert server.loses_age is loses
