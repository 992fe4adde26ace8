"""Batch scripts leave the same behind through sbatch and through the adaptor.

`python -m tests.campaign.scripts` compares more of them.
"""

from __future__ import annotations

import pytest

from tests.campaign.scripts.cases import CASES
from tests.campaign.scripts.comparing import SITE, compare
from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]

CHOSEN = "srun in an array, its exit code"
DIFFERENT = {
    "COLUMNS",
    "LINES",
    "BASH_FUNC_srun%%",
    "OLDPWD",
    "PATH",
    "SHLVL",
    "SLURM_NODE_ALIASES",
    "SLURM_TASK_PID",
    "SLURM_WORKING_CLUSTER",
    "TERM",
    "NO_COLOR",
}
"""The lab sets the last one; docs/scripts.md names the others."""


def test_an_array_leaves_the_same_behind(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    (case,) = (case for case in CASES if case.name == CHOSEN)
    different, variables = compare(case, slurm, lab)
    assert not different
    assert {line.partition(":")[0] for line in variables} <= DIFFERENT
