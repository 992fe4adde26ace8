"""Tasks from JSON Lines: objects with `argv` or `command`, and what else `_Line` has.

`cpus`, `mem`, `gpus`, `nodes` and `time` say what this one task needs in place of what the bag says.
"""

from __future__ import annotations

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import AtLeast1
from adaptor.bagfile.own_options import OwnOptions, explained
from adaptor.errors import BagFileError
from adaptor.option_kinds import plain_text
from adaptor.resources import OwnNeeds
from adaptor.scheduling.task_links import LinkError, resolved


class _Line(OwnOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    argv: list[str] | None = None
    command: str | None = None
    cwd: str | None = None
    name: str | None = None
    id: str | None = None
    after: tuple[int | str, ...] = ()
    after_any: tuple[int | str, ...] = ()
    nodes: AtLeast1 | None = None


_decoder = msgspec.json.Decoder(_Line)


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
            raise BagFileError(f"{source}:{number}: {explained(str(error), _Line)[:500]}") from None
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
    needs = msgspec.structs.replace(line.needs, nodes=line.nodes)
    return TaskInput(
        command,
        line.name,
        line.cwd,
        line.environment,
        id=line.id,
        after=line.after,
        after_any=line.after_any,
        needs=None if needs == OwnNeeds() else needs,
        line=0 if needs == OwnNeeds() else number,
    )
