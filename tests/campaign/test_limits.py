"""Limits are read from Slurm's own words."""

from __future__ import annotations

import pytest

from tests.campaign.limits import exceeded

FINE = "adaptor-abc.1|RUNNING|16|6:00|batch"


@pytest.mark.parametrize(
    ("rows", "findings"),
    [
        ([], 0),
        ([FINE] * 3, 0),
        ([FINE] * 4, 1),
        ([FINE] * 3 + ["adaptor-abc.2|COMPLETING|16|6:00|batch"], 0),
        ([FINE] * 3 + ["somebody|PENDING|32|1-00:00:00|batch"], 0),
        ([FINE] * 3 + ["adaptor-abc.3|RUNNING|8|6:00|scavenger"], 0),
        (["adaptor-abc.1|PENDING|17|1:00|batch"], 1),
        (["adaptor-abc.1|PENDING|1|7:00|batch"], 1),
        (["adaptor-abc.1|PENDING|1|1-00:00:00|batch"], 1),
    ],
)
def test_a_look_at_the_queue_is_judged(rows: list[str], findings: int) -> None:
    assert len(list(exceeded("hpc", "\n".join(rows)))) == findings
