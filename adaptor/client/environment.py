"""The environment and the file mode mask that a bag's tasks inherit, captured as sbatch does."""

from __future__ import annotations

import os
from collections.abc import Mapping

_PREFIXES = (
    *("ADAPTOR_", "DBUS_", "PBS_", "SBATCH_", "SLURM_", "SLURMD_", "SRUN_", "SSH_", "TERM_"),
    *("TMUX", "XDG_SESSION"),
    *("PMI_", "PMIX_", "OMPI_COMM_WORLD_"),  # of a step or a process of MPI
)
_NAMES = {
    *("_", "SHLVL", "PWD", "OLDPWD", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"),
    *("XDG_RUNTIME_DIR", "XDG_VTNR", "XDG_SEAT"),
    *("TERM", "TERMCAP", "TERMINFO", "COLORTERM", "LINES", "COLUMNS", "STY", "WINDOW", "WINDOWID"),
    *("VTE_VERSION", "GPG_TTY", "INVOCATION_ID", "JOURNAL_STREAM"),
}


def captured(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Variables that tasks inherit, and the names of those left out because they are not UTF-8.

    Variables of this session or of a job that we run in (a terminal, a desktop, another batch job) are
    left out: they mean nothing on a compute node.
    """
    kept: dict[str, str] = {}
    foreign: list[str] = []
    for name, value in environment.items():
        if name in _NAMES or name.startswith(_PREFIXES):
            continue
        try:
            f"{name}={value}".encode()
        except UnicodeEncodeError:
            foreign.append(name.encode(errors="replace").decode())
        else:
            kept[name] = value
    return kept, foreign


def current_umask() -> int:
    """The file mode mask of this process. It can only be read by setting it, so private for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
