"""No local job meets a process of ours on a lent node, whatever happens to what keeps the node."""

from __future__ import annotations

import pytest

from lab.campaign.donation_agents import UNAVAILABLE, run


@pytest.mark.parametrize(
    "scheduler",
    [pytest.param("slurm", marks=pytest.mark.slurm), pytest.param("openpbs", marks=pytest.mark.pbs)],
)
def test_twenty_local_jobs_meet_nobody(scheduler: str) -> None:
    if reason := UNAVAILABLE[scheduler]():
        pytest.skip(reason)
    outcome = run(scheduler, 20, seed=7)
    assert (outcome.seen, outcome.troubles) == ([], []), str(outcome)
    assert len(outcome.waits) >= 10, f"most of the nodes are in use when a job comes\n{outcome}"
