"""Public array scripts as cases: what they ask of Slurm, on a small cluster without GPUs."""

from __future__ import annotations

import re

from lab.campaign.scripts.cases import Case
from tests.bagfile.scripts.public import PublicScript, public_scripts

_OF_SITES = re.compile(
    r"\s+(?:--(?:partition|account|qos|constraint|exclude|nodelist|reservation|clusters?|mem[\w-]*|gres"
    r"|gpus[\w-]*|cpus-per-gpu|time|chdir|workdir|array|mail-user|export|begin|licenses?)(?:[= ]\s*\S+)"
    r"|-[pACqxwtaDGLM]\s*\S+)"
)
"""Options that the cluster does not have, or has in another way."""
_COUNT = re.compile(r"(?P<name>(?:--(?:cpus-per-task|ntasks|ntasks-per-node)[= ]|-[cn]\s?)\s*)(?P<count>\d+)")
_PLACE = re.compile(r"((?:--output|--error)[= ]|-[oe]\s+)/data/")
_PROGRAM = '#!/bin/sh\necho "$SLURM_PROCID of $SLURM_NTASKS: $SLURM_ARRAY_TASK_ID"\n'
_BODY = (
    "for line in 1 2 3 4 5; do echo $SLURM_ARRAY_TASK_ID $line; done",
    'env -0 > "$SLURM_SUBMIT_DIR/env-${SLURM_ARRAY_TASK_ID:-none}"',
)
_TOGETHER = "touch in_$SLURM_ARRAY_TASK_ID; until [ -e in_1 ] && [ -e in_2 ]; do sleep 0.1; done"


def public_cases() -> list[Case]:
    """Scripts of sbatch that run and were chosen because they may differ."""
    runs = ("unchanged", "remark")
    return [
        _case(each)
        for each in public_scripts()
        if each.found != "drawn" and each.kind in runs and "#SBATCH" in each.text
    ]


def _case(script: PublicScript) -> Case:
    directives, commands = [], []
    for line in script.text.split("\n")[1:]:
        if line.startswith("#SBATCH"):
            kept = _PLACE.sub(r"\1", _OF_SITES.sub("", line))
            directives.append(_COUNT.sub(lambda found: f"{found['name']}{min(int(found['count']), 2)}", kept))
        elif not re.match(r"sbatch|qsub|scontrol|scancel|sacct|module", line):
            commands.append(line)
    text = "\n".join(["#!/bin/bash", *directives, _TOGETHER, *_BODY, *commands, "wait", ""])
    folders = re.findall(r"""(?:(?:--output|--error)[= ]|-[oe]\s*)["']?([\w./-]+)/""", text)
    return Case(
        script.repository,
        text,
        options=("--array=1-2",),
        elements=(1, 2),
        folders=tuple(dict.fromkeys(folders)),
        files=(("program", _PROGRAM), ("mpi_program", _PROGRAM)),
        shared=True,
    )
