"""Tasks from JSON Lines: objects with `argv` or `command`, and what else `_Line` has.

`cpus`, `mem`, `gpus`, `nodes` and `time` say what this one task needs in place of what the bag says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import AtLeast1
from adaptor.did_you_mean import did_you_mean
from adaptor.errors import BagFileError
from adaptor.option_kinds import GPUS, MEMORY, plain_text
from adaptor.resources import OwnNeeds, TaskGpus
from adaptor.scheduling.task_links import LinkError, resolved
from adaptor.units import parse_duration

_Number = Annotated[float, msgspec.Meta(ge=0)]


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    argv: list[str] | None = None
    command: str | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    name: str | None = None
    id: str | None = None
    after: tuple[int | str, ...] = ()
    after_any: tuple[int | str, ...] = ()
    cpus: AtLeast1 | None = None
    mem: str | int | None = None
    gpus: str | _Number | None = None
    nodes: AtLeast1 | None = None
    time: str | _Number | None = None


_decoder = msgspec.json.Decoder(_Line)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")


def parse_json_lines(text: str, source: str, *, more: bool = False) -> list[TaskInput]:
    """Blank lines are skipped. `more`: the tasks are for a bag that may have others already.

    Raises:
        BagFileError: a line is not such an object, or names a task that cannot be, with its number.
    """
    tasks: list[TaskInput] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            tasks.append(_task(_decoder.decode(line), number))
            lines.append(number)
        except (msgspec.DecodeError, ValueError) as error:
            raise BagFileError(f"{source}:{number}: {_explained(str(error))[:500]}") from None
    try:
        own = {task.id for task in tasks}
        if more:
            resolved(tasks, _ANY, lambda ids: dict.fromkeys(ids - own, 0))
        else:
            resolved(tasks, 0, lambda _: {})
    except LinkError as error:
        raise BagFileError(f"{source}:{lines[error.index]}: {error}") from None
    return tasks


_ANY = 2**62
"""More tasks than any bag has."""


def _task(line: _Line, number: int) -> TaskInput:
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
    plain_text(line.id or "")
    if line.id == "":
        raise ValueError("id: must not be empty")
    environment = line.env or {}
    for key, value in environment.items():
        if not key or "=" in key:
            raise ValueError(f"env: {key!r} is not a name of a variable")
        plain_text(key)
        plain_text(value)
    needs = _needs(line)
    return TaskInput(
        command,
        line.name,
        line.cwd,
        line.env,
        id=line.id,
        after=line.after,
        after_any=line.after_any,
        needs=needs,
        line=number if needs else 0,
    )


def _needs(line: _Line) -> OwnNeeds | None:
    """What the task needs in place of what its bag says; None: nothing."""
    gpus = _of("gpus", _gpus, line.gpus)
    needs = OwnNeeds(
        cpus=line.cpus,
        memory=_of("mem", _memory, line.mem),
        gpus=gpus[0] if gpus else None,
        gpu_type=gpus[1] if gpus else "",
        nodes=line.nodes,
        time=_of("time", _time, line.time),
    )
    return None if needs == OwnNeeds() else needs


_Value = TypeVar("_Value")


def _of(key: str, parse: Callable[[str], _Value], given: str | float | None) -> _Value | None:
    """The value of a key, written as a number or as on a command line; None: it is not there."""
    if given is None:
        return None
    try:
        return parse(
            given if isinstance(given, str) else (str(int(given)) if given == int(given) else repr(given))
        )
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _memory(text: str) -> int:
    return int(MEMORY.parse(text, 0.0))


def _gpus(text: str) -> tuple[float, str]:
    found: TaskGpus | None = GPUS.parse(text, 0.0)
    return (found.count, found.type) if found else (0.0, "")


def _time(text: str) -> float:
    seconds = parse_duration(text)
    if not 0 < seconds < math.inf:
        raise ValueError("must be above 0, such as 90, '10m' or '2h'")
    return seconds


def _explained(problem: str) -> str:
    """A message of msgspec, with a suggestion for an unknown key; its path (`$.argv[0]`) stays."""
    unknown = _UNKNOWN.match(problem)
    if not unknown:
        return problem
    known = _Line.__struct_fields__
    hint = did_you_mean(unknown[1], known, f"known are {', '.join(known)}")
    return f"unknown key '{unknown[1]}' ({hint})"
