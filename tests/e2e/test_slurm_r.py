"""R: a thousand jobs of batchtools and of future on a real Slurm."""

from __future__ import annotations

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, site
from tests.e2e.test_local_r import PATIENCE, check_a_thousand_jobs, with_r

pytestmark = [pytest.mark.slurm, pytest.mark.nightly, pytest.mark.timeout(2 * PATIENCE)]


def test_a_thousand_jobs_come_back(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(site("slurm", (3, 8, "20m"), initial_tr="3m", idle_timeout=5))
    check_a_thousand_jobs(lab, with_r(lab))
