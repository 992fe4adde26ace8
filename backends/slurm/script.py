"""The batch script of a pilot, made from the template beside this file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from backends.scripts import export_lines, fill, prologue_lines

_TEMPLATE = Path(__file__).with_name("pilot.template")


def render(
    *,
    processors: int,
    minutes: int,
    command: Sequence[str],
    environment: Mapping[str, str],
    prologue: str,
    worker: Sequence[str],
) -> str:
    """The text of the script.

    Args:
        command: how it is submitted, for the person who reads the script.
        environment: variables for the workers; nothing secret.
        prologue: shell lines that run once before the workers, verbatim.
        worker: the program and its arguments that run on each node.
    """
    return fill(
        _TEMPLATE,
        processors=str(processors),
        minutes=str(minutes),
        command=shlex.join(command).replace("\n", " "),
        exports=export_lines(environment),
        prologue=prologue_lines(prologue),
        worker=shlex.join(worker),
    )
