"""What must not be in a queue is found there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.campaign.limits import exceeded
from lab.campaign.schedulers.cluster import Job

FINE = Job("7", "adaptor-abc.1", 16, 6.0)


@pytest.mark.parametrize(
    ("jobs", "findings"),
    [
        ([], 0),
        ([FINE] * 3, 0),
        ([FINE] * 4, 1),
        ([FINE] * 3 + [replace(FINE, leaves=True)], 0),
        ([FINE] * 3 + [replace(FINE, donated=True)], 0),
        ([replace(FINE, processors=17)], 1),
        ([replace(FINE, minutes=7)], 1),
    ],
)
def test_a_look_at_the_queue_is_judged(jobs: list[Job], findings: int) -> None:
    assert len(list(exceeded("hpc", jobs, 3))) == findings
