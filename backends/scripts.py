"""What the batch scripts of all schedulers are made of: templates, variables and the site's prologue."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping, Sequence
from pathlib import Path

_PROLOGUE = Path(__file__).with_name("prologue.template")


class _Template(string.Template):
    """`$` is the shell's own, therefore another mark for what we fill in."""

    delimiter = "@@"


def render(
    template: Path,
    *,
    processors: int,
    command: Sequence[str],
    environment: Mapping[str, str],
    prologue: str,
    worker: Sequence[str],
    **own: str,
) -> str:
    """The text of a script.

    Args:
        command: how it is submitted, for the person who reads the script.
        environment: variables for the workers; nothing secret.
        prologue: shell lines that run once before the workers, verbatim.
        worker: the program and its arguments that run on each node.
        own: what only this scheduler's template asks for.
    """
    return fill(
        template,
        processors=str(processors),
        command=shlex.join(command).replace("\n", " "),
        exports="\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items()),
        prologue=_prologue_lines(prologue),
        worker=shlex.join(worker),
        **own,
    )


def fill(template: Path, **values: str) -> str:
    """The text of a template with its `@@name` replaced."""
    return _Template(template.read_text(encoding="utf-8")).substitute(values)


def _prologue_lines(prologue: str) -> str:
    """The site's lines, verbatim, and what makes their effect known; empty where there are none."""
    if not prologue.strip():
        return ""
    return "\n" + fill(_PROLOGUE, prologue=prologue.strip("\n")).rstrip("\n")
