"""Batch scripts leave the same behind through sbatch and through the adaptor.

`python -m lab.campaign.scripts` compares more of them.
"""

from __future__ import annotations

import re

import pytest

from lab.campaign.scripts.cases import CASES
from lab.campaign.scripts.comparing import SITE, compare
from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab

pytestmark = pytest.mark.slurm

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
    *("SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME"),
    *("SLURM_JOB_SLUID", "SLURM_JOB_EXCLUSIVE", "SLURM_JOB_OVERSUBSCRIBE", "SLURM_OOM_KILL_STEP"),
    *("SLURM_PRIO_PROCESS", "SLURM_STEP_ID", "SLURM_STEPID"),
}
"""The lab sets NO_COLOR; docs/scripts.md names the others."""
FOR_STARTERS = ("HYDRA_", "I_MPI_", "OMPI_MCA_", "PRTE_MCA_")
TIMES = re.compile(r"SLURM_JOB_(?:START|END)_TIME: (\w+) and (\w+)")


def test_an_array_leaves_the_same_behind(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    (case,) = (case for case in CASES if case.name == CHOSEN)
    different, variables = compare(case, slurm, lab)
    assert not different
    names = {line.partition(":")[0] for line in variables}
    assert {name for name in names if not name.startswith(FOR_STARTERS)} <= DIFFERENT
    times = [found.groups() for line in variables if (found := TIMES.fullmatch(line))]
    assert all(value.isdigit() for pair in times for value in pair), "both tell them, or none"
