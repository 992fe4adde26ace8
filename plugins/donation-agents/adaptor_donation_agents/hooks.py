"""The scripts by which a scheduler takes donated nodes back, and what an administrator does with them."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import NamedTuple

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.errors import UsageError
from backends.scripts import fill

_TEMPLATES = Path(__file__).with_name("templates")


class Script(NamedTuple):
    name: str
    text: str
    mode: int = 0o755


class Hooks(NamedTuple):
    """The needs of a site's scheduler."""

    scripts: tuple[Script, ...]
    instructions: tuple[str, ...]
    """For the administrator, line by line; `{folder}` stands for where the scripts lie."""
    folder: str  # where they usually lie


class HookOptions(NamedTuple):
    """The values from which all hooks are made."""

    site: str
    python: str  # the interpreter on the nodes, absolute
    user: int  # who uses the donated nodes, by number
    donation: DonationConfig

    @property
    def options(self) -> list[str]:
        """Options of `python -m adaptor_donation_agents.reclaim`, for prolog and epilog."""
        donation = self.donation
        return [
            f"--timeout={donation.reclaim_timeout:g}",
            f"--runtime={donation.runtime_directory}",
            f"--user={self.user}",
        ]

    @property
    def bound(self) -> int:
        """Seconds after which a hook is given up: the reclaim gives up before."""
        return math.ceil(float(self.donation.reclaim_timeout)) + 1


def make_hooks(site: SiteConfig, wanted: HookOptions) -> Hooks:
    """The hooks of the site's scheduler. Raises UsageError: there are none for it."""
    if site.backend == "slurm":
        return _of_slurm(wanted)
    if site.backend == "pbs":
        text = fill(
            _TEMPLATES / "openpbs.template",
            site=wanted.site,
            python=repr(wanted.python),
            options=", ".join(map(repr, wanted.options)),
            bound=str(wanted.bound),
        )
        instructions = _OPENPBS.replace("@@alarm", str(wanted.bound + 4))
        # One hook for both events.
        return Hooks((Script("adaptor_reclaim.py", text, 0o644),), tuple(instructions.splitlines()), ".")
    raise UsageError(
        f"there are no hooks for the backend {site.backend}; let its prolog run "
        "`adaptor reclaim NODE --job ID` on each node, and its epilog the same with --offer"
    )


_SLURM = """\
Put both files on every node, where root alone can write, and into slurm.conf:
    Prolog={folder}/adaptor-prolog
    Epilog={folder}/adaptor-epilog
    PrologFlags=Alloc,DeferBatch
Alloc: the prolog runs on all nodes of a job as soon as it gets them, not with its first step there.
DeferBatch: the job's script waits for all of these prologs. Where an older Slurm does not know it, leave it
out: the script then waits for the prolog of its own node, and each step for that of its node.
Where there is a Prolog already, call these from it, or name a folder of scripts: Prolog=/etc/slurm/prolog.d/*
Then: scontrol reconfigure"""
_OPENPBS = """\
Tell the server, as root:
    qmgr -c "create hook adaptor_reclaim"
    qmgr -c "set hook adaptor_reclaim event = 'execjob_begin,execjob_end'"
    qmgr -c "set hook adaptor_reclaim fail_action = none"
    qmgr -c "set hook adaptor_reclaim alarm = @@alarm"
    qmgr -c "import hook adaptor_reclaim application/x-python default {folder}/adaptor_reclaim.py"
execjob_begin and execjob_end come to every node of a job; execjob_prologue comes to a node only with the
job's first process there."""


def _of_slurm(wanted: HookOptions) -> Hooks:
    scripts = []
    for name in ("prolog", "epilog"):
        text = fill(
            _TEMPLATES / f"{name}.template",
            site=wanted.site,
            python=shlex.quote(wanted.python),
            options=shlex.join(wanted.options),
            bound=str(wanted.bound),
        )
        scripts.append(Script(f"adaptor-{name}", text))
    return Hooks(tuple(scripts), tuple(_SLURM.splitlines()), "/etc/slurm")
