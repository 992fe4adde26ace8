"""Tasks from a template and parameters: every combination of their values, the last one fastest."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Mapping, Sequence

from adaptor.api import TaskInput
from adaptor.bagfile.parameters import Axis
from adaptor.did_you_mean import did_you_mean
from adaptor.errors import UsageError
from adaptor.option_kinds import plain_text

MAX_TASKS = 10_000_000
"""Tasks of one template; more is taken for a typing error."""

_TOKEN = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]|[^{}]+")


def expand(template: str, axes: Sequence[Axis]) -> list[TaskInput]:
    """One shell line for each combination of rows; `{name}` stands for a value, quoted for the shell.

    Raises:
        UsageError: an unknown or unused parameter, a lone brace, too many combinations, or a value that
            needs quoting where the template has quotes already.
    """
    if not template.strip():
        raise UsageError("--template: must not be empty; write a shell line, for instance 'render {scene}'")
    parts, fields = _parsed(_clean(template), axes)
    total = math.prod(len(axis.rows) for axis in axes)
    if total > MAX_TASKS:
        raise UsageError(f"--template: {total:,} combinations are more than {MAX_TASKS:,} tasks")
    names = [name for axis in axes for name in axis.names]
    used = {name for _, name in fields}
    tasks = []
    for rows in itertools.product(*(axis.rows for axis in axes)):
        chosen = dict(zip(names, itertools.chain.from_iterable(rows), strict=True))
        for index, name in fields:
            parts[index] = shlex.quote(chosen[name])
        label = " ".join(f"{key}={value}" for key, value in chosen.items() if key in used)
        tasks.append(TaskInput("".join(parts), label or None))
    return tasks


_Fields = list[tuple[int, str]]
"""Places among a template's pieces, and the parameter that fills each."""


def _parsed(template: str, axes: Sequence[Axis]) -> tuple[list[str], _Fields]:
    """The template's pieces, and the places of parameters among them."""
    parameters = {
        name: [row[place] for row in axis.rows] for axis in axes for place, name in enumerate(axis.names)
    }
    parts: list[str] = []
    fields: _Fields = []
    for token in _TOKEN.findall(template):
        if token in ("{{", "}}"):
            parts.append(token[0])
        elif token in ("{", "}"):
            raise UsageError(f"--template: unbalanced '{token}'; write '{token}{token}' for a literal brace")
        elif token[0] == "{":
            name = _known(token[1:-1], parameters)
            before = "".join(parts)
            values = parameters[name]
            mark = _open_quote(before)
            if mark and any(shlex.quote(value) != value for value in values):
                raise UsageError(
                    f"--template: {{{name}}} is inside {mark} … {mark}, and one of its values needs quoting; "
                    "remove those quotes, values are quoted automatically"
                )
            fields.append((len(parts), name))
            parts.append("")
        else:
            parts.append(token)
    used = {name for _, name in fields}
    unused = [name for axis in axes for name in axis.names if name not in used and not axis.table]
    if unused:
        raise UsageError(f"--param {unused[0]}: not used; the template has no {{{unused[0]}}}")
    return parts, fields


def _known(name: str, parameters: Mapping[str, Sequence[str]]) -> str:
    if name in parameters:
        return name
    shown = name[:60]
    meant = did_you_mean(name, parameters, f"give -P {shown or 'NAME'}=…", shown="{{{}}}")
    raise UsageError(f"--template: no parameter for {{{shown}}} ({meant}; write '{{{{' for a literal brace)")


def _open_quote(text: str) -> str:
    """The quote that is open at the end of this shell text; empty where none is."""
    mark, escaped = "", False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\" and mark != "'":
            escaped = True
        elif mark:
            mark = "" if character == mark else mark
        elif character in "'\"":
            mark = character
    return mark


def _clean(text: str) -> str:
    try:
        return plain_text(text)
    except ValueError as error:
        raise UsageError(f"--template: {error}") from None
