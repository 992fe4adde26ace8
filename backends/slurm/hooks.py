"""Prolog and epilog of Slurm for donated nodes outside its book-keeping."""

from __future__ import annotations

import shlex
from pathlib import Path

from backends.hooks import Hooks, Script, Wanted
from backends.scripts import fill

_FOLDER = Path(__file__).parent
_INSTRUCTIONS = """\
Put both files on every node, where root alone can write, and into slurm.conf:
    Prolog={folder}/adaptor-prolog
    Epilog={folder}/adaptor-epilog
    PrologFlags=Alloc,DeferBatch
Alloc: the prolog runs on all nodes of a job as soon as it gets them, not with its first step there.
DeferBatch: the job's script waits for all of these prologs. Where an older Slurm does not know it, leave it
out: the script then waits for the prolog of its own node, and each step for that of its node.
Where there is a Prolog already, call these from it, or name a folder of scripts: Prolog=/etc/slurm/prolog.d/*
Then: scontrol reconfigure"""


def slurm_hooks(wanted: Wanted) -> Hooks:
    """`Prolog` and `Epilog` of slurm.conf; `backends.slurm` has their templates."""
    scripts = []
    for kind in ("prolog", "epilog"):
        text = fill(
            _FOLDER / f"{kind}.template",
            site=wanted.site,
            python=shlex.quote(wanted.python),
            options=shlex.join(wanted.options),
            bound=str(wanted.bound),
        )
        scripts.append(Script(f"adaptor-{kind}", text))
    return Hooks(tuple(scripts), tuple(_INSTRUCTIONS.splitlines()), "/etc/slurm")
