"""What the batch scripts of all schedulers are made of: templates, variables and the site's prologue."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping
from pathlib import Path

_PROLOGUE = Path(__file__).with_name("prologue.template")


class _Template(string.Template):
    """`$` is the shell's own, therefore another mark for what we fill in."""

    delimiter = "@@"


def fill(template: Path, **values: str) -> str:
    return _Template(template.read_text(encoding="utf-8")).substitute(values)


def export_lines(environment: Mapping[str, str]) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment.items())


def prologue_lines(prologue: str) -> str:
    """The site's lines, verbatim, and what makes their effect known; empty where there are none."""
    if not prologue.strip():
        return ""
    return "\n" + fill(_PROLOGUE, prologue=prologue.strip("\n")).rstrip("\n")
