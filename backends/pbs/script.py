"""The script of a pilot, made from a dialect's template."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from backends.scripts import export_lines, fill, prologue_lines


def render(
    template: Path,
    *,
    processors: int,
    seconds: int,
    command: Sequence[str],
    environment: Mapping[str, str],
    prologue: str,
    worker: Sequence[str],
    memory: int | None,
) -> str:
    """The text of the script.

    Args:
        command: how it is submitted, for the person who reads the script.
        environment: variables for the workers; nothing secret.
        prologue: shell lines that run once before the workers, verbatim.
        worker: the program and its arguments that run on each node.
        memory: bytes for each processor where memory was asked for.
    """
    return fill(
        template,
        processors=str(processors),
        seconds=str(seconds),
        command=shlex.join(command).replace("\n", " "),
        exports=export_lines(environment),
        prologue=prologue_lines(prologue),
        worker=shlex.join(worker),
        memory="" if memory is None else str(memory),
    )
