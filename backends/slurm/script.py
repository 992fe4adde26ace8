"""The batch script of a pilot, made from the template beside this file."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

_FOLDER = Path(__file__).parent


class _Template(string.Template):
    """`$` is the shell's own, therefore another mark for what we fill in."""

    delimiter = "@@"


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
    return _filled(
        "pilot.template",
        processors=str(processors),
        minutes=str(minutes),
        command=shlex.join(command).replace("\n", " "),
        exports="\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items()),
        prologue=_prologue(prologue),
        worker=shlex.join(worker),
    )


def _prologue(lines: str) -> str:
    return (
        "\n" + _filled("prologue.template", prologue=lines.strip("\n")).rstrip("\n") if lines.strip() else ""
    )


def _filled(name: str, **values: str) -> str:
    return _Template((_FOLDER / name).read_text(encoding="utf-8")).substitute(values)
