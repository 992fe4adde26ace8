"""No local job meets a process of ours on a lent node, whatever happens to what keeps the node."""

from __future__ import annotations

import pytest

from tests.campaign.donation_agents import run
from tests.clusters.slurm import available


@pytest.mark.slurm
@pytest.mark.timeout(400)
def test_twenty_local_jobs_meet_nobody() -> None:
    if reason := available():
        pytest.skip(reason)
    outcome = run(20, seed=7)
    assert (outcome.seen, outcome.troubles) == ([], []), str(outcome)
    assert len(outcome.waits) >= 10, f"most of the nodes are in use when a job comes\n{outcome}"
