"""The variables with which Slurm's commands run, and those that a pilot inherits."""

from __future__ import annotations

import re
from collections.abc import Mapping

_CLIENT_OPTIONS = re.compile(r"(SLURM|SBATCH|SQUEUE|SINFO|SACCT|SCANCEL|SCONTROL|SACCTMGR|SALLOC|SRUN)_")
_REACH = frozenset({"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT", "SACKD_JWT"})
"""Say which cluster is asked, and as whom; never handed to a pilot."""

_ANSWERS = {
    "LC_ALL": "C",
    "SLURM_TIME_FORMAT": "%s",  # epoch seconds, so that no time zone has to be guessed
    "SLURM_BITSTR_LEN": "0",  # the indices of job arrays in full
}

_INHERITED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|LD_LIBRARY_PATH|SLURM_CONF"
    # What the `module` command of a prologue needs.
    r"|BASH_ENV|BASH_FUNC_\w+(%%|\(\))|MODULE\w+|LMOD_\w+|LOADEDMODULES|_LMFILES_"
)


def asking_environment(own: Mapping[str, str]) -> dict[str, str]:
    """For questions: nothing that changes what the commands print but what we set ourselves."""
    return {**_without_options(own), **_ANSWERS}


def submitting_environment(own: Mapping[str, str]) -> dict[str, str]:
    """For sbatch, which hands its environment on to the job: only what a script needs.

    `--export=NONE` would do nearly that, but takes PATH and `module` away, and a list of names makes
    some versions run a login shell of the user on the node.
    """
    return {key: value for key, value in _without_options(own).items() if _INHERITED.fullmatch(key)}


def _without_options(own: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in own.items() if key in _REACH or not _CLIENT_OPTIONS.match(key)}
