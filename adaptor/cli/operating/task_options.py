"""Options that say how large the tasks are for which something is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from adaptor.cli.options import of_kind
from adaptor.option_kinds import GPUS, MEMORY
from adaptor.resources import TaskGpus, TaskSize

F = TypeVar("F", bound=Callable[..., object])


def task_options(command: F) -> F:
    for option in (
        click.option("--nodes", type=click.IntRange(1), metavar="N", help="Whole nodes of each task."),
        click.option(
            "--gpus", type=of_kind(GPUS), metavar="[TYPE:]N", help="GPUs of each task: 1, a100:2 or 0.5."
        ),
        click.option("--mem", type=of_kind(MEMORY), metavar="SIZE", help="Memory of each task, such as 4G."),
        click.option("--cpus", type=click.IntRange(1), metavar="N", help="Processors of each task."),
    ):
        command = option(command)
    return command


def chosen_task(
    *, cpus: int | None, mem: int | None, gpus: TaskGpus | None, nodes: int | None
) -> TaskSize | None:
    """None where no option was given, or only `--gpus 0`."""
    if (cpus, mem, gpus, nodes) == (None, None, None, None):
        return None
    wanted = gpus or TaskGpus(1)
    return TaskSize(
        processors=cpus or 1,
        memory=mem,
        gpus=wanted.count if gpus else 0,
        gpu_type=wanted.type if gpus else "",
        nodes=nodes or 1,
    )
