"""The commands of Torque in front of the throwaway Slurm: Debian's wrappers, not a real Torque."""

from __future__ import annotations

import shutil
import subprocess

_COMMANDS = ("qsub", "qstat", "qdel", "pbsnodes")


def available() -> str | None:
    """None where Slurm's wrappers of Torque's commands are here, else why not."""
    missing = [name for name in _COMMANDS if not shutil.which(name)]
    if missing:
        return (
            f"no Torque commands in front of Slurm here: {', '.join(missing)} not found "
            "(Debian: apt-get install slurm-wlm-torque)"
        )
    # It reads slurm.conf before its own options, but never asks the controller.
    usage = subprocess.run(["qstat", "--version"], capture_output=True, text=True, check=False)
    if "[--man]" not in usage.stderr:
        return f"qstat is not Slurm's wrapper here: {usage.stderr.strip()[:200]}"
    return None
