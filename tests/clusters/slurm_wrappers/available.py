"""The commands of Torque in front of the throwaway Slurm: Debian's wrappers, not a real Torque."""

from __future__ import annotations

import shutil

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.throwaway import ClusterError

_COMMANDS = ("qsub", "qstat", "qdel", "pbsnodes")


def available(cluster: ThrowawaySlurm) -> str | None:
    """None where Slurm's wrappers of Torque's commands work on this cluster, else why not."""
    missing = [name for name in _COMMANDS if not shutil.which(name)]
    if missing:
        return (
            f"no Torque commands in front of Slurm here: {', '.join(missing)} not found "
            "(Debian: apt-get install slurm-wlm-torque)"
        )
    try:
        # Asked by a job about itself: Debian 13's qstat ends with an error at each job that runs.
        shown = cluster.run(["srun", "-n1", "-t1", "sh", "-c", 'qstat -f "$SLURM_JOB_ID"'], timeout=120)
    except ClusterError as error:
        return f"qstat does not show a running job of Slurm's here: {' '.join(str(error).split())[:300]}"
    return (
        None
        if "job_state = R" in shown
        else f"qstat is not Slurm's wrapper here: {' '.join(shown.split())[:300]}"
    )
