"""The commands that a page shows: the lines with `$` in its console blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    line: str
    shown: tuple[str, ...]
    """Output that the page shows."""


def console_blocks(text: str) -> list[list[Command]]:
    """The commands of each block, in order."""
    return [_commands(found[1]) for found in _BLOCK.finditer(text)]


def _commands(block: str) -> list[Command]:
    commands: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], ()))
        elif commands:
            commands[-1] = Command(commands[-1].line, (*commands[-1].shown, line))
    return commands
