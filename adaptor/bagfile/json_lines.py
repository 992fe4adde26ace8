"""Tasks from JSON Lines: one object per line with `argv` or `command`, and `cwd`, `env`, `name`."""

from __future__ import annotations

import re

import msgspec

from adaptor.did_you_mean import did_you_mean
from adaptor.errors import BagFileError
from adaptor.option_kinds import plain_text
from adaptor.protocol.control import TaskInput


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    argv: list[str] | None = None
    command: str | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    name: str | None = None


_decoder = msgspec.json.Decoder(_Line)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")


def parse_json_lines(text: str, source: str) -> list[TaskInput]:
    """Blank lines are skipped.

    Raises:
        BagFileError: a line is not such an object, with its number.
    """
    tasks = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            tasks.append(_task(_decoder.decode(line)))
        except (msgspec.DecodeError, ValueError) as error:
            raise BagFileError(f"{source}:{number}: {_explained(str(error))[:500]}") from None
    return tasks


def _task(line: _Line) -> TaskInput:
    if (line.argv is None) == (line.command is None):
        raise ValueError("exactly one of 'argv' and 'command' is required")
    if line.argv is not None and not (line.argv and line.argv[0]):
        raise ValueError("argv: the first word must name a program")
    if line.command is not None and not line.command.strip():
        raise ValueError("command: must not be empty")
    if line.cwd == "":
        raise ValueError("cwd: must not be empty")
    command = line.argv if line.argv is not None else line.command
    assert command is not None
    for text in command if isinstance(command, list) else (command,):
        plain_text(text)
    plain_text(line.cwd or "")
    plain_text(line.name or "")
    _check_environment(line.env or {})
    return TaskInput(command, line.name, line.cwd, line.env)


def _check_environment(environment: dict[str, str]) -> None:
    for key, value in environment.items():
        if not key or "=" in key:
            raise ValueError(f"env: {key!r} is not a name of a variable")
        plain_text(key)
        plain_text(value)


def _explained(problem: str) -> str:
    """A message of msgspec, with a suggestion for an unknown key; its path (`$.argv[0]`) stays."""
    unknown = _UNKNOWN.match(problem)
    if not unknown:
        return problem
    known = _Line.__struct_fields__
    hint = did_you_mean(unknown[1], known, f"known are {', '.join(known)}")
    return f"unknown key '{unknown[1]}' ({hint})"
