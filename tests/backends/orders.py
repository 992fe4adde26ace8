"""Orders of pilots, and the batch script of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adaptor.model import Request
from adaptor.reports import OwnJob
from adaptor.resources import TaskSize
from backends.base import Backend, PilotOrder
from backends.scripts import render


def order(p: int = 1, tr: int = 600, task: TaskSize | None = None, **others: Any) -> PilotOrder:
    """One that nothing runs."""
    usual = {
        "tag": "adaptor-x.hpc.7",
        "directory": Path("/pilots/7"),
        "worker": ("worker",),
        "environment": {},
    }
    return PilotOrder(**{"request": Request(p, tr), "task": task or TaskSize(), **usual, **others})


def runnable(
    folder: Path,
    tag: str,
    command: str,
    p: int = 1,
    tr: int = 600,
    task: TaskSize | None = None,
    **others: Any,
) -> PilotOrder:
    """One whose worker is a shell command, with a folder of its own in `folder`."""
    directory = folder / tag
    directory.mkdir(mode=0o700)
    environment = {"ADAPTOR_DIRECTORY": str(directory), **others.pop("environment", {})}
    words = {"directory": directory, "worker": ("/bin/sh", "-c", command), "environment": environment}
    return order(p, tr, task, tag=tag, **words, **others)


def own(backend: Backend, *ids: str) -> list[OwnJob]:
    """Jobs of these numbers, with the tags that the scheduler has of them."""
    return [report.own for report in backend.jobs(ids, "no such tag")]


def script(template: Path, command: Sequence[str], **own: str) -> str:
    """Script of a pilot of six processors; `fixtures` has it as it was read and found good."""
    return render(
        template,
        processors=6,
        command=[*command, "/home/u/my pilots/7/pilot.sh"],
        environment={"ADAPTOR_PILOT": "7", "ADAPTOR_DIRECTORY": "/home/u/my pilots/7"},
        prologue="module load python/3.11\nexport OMP_NUM_THREADS=1\n",
        worker=["/opt/python", "-m", "adaptor.worker"],
        **own,
    )
