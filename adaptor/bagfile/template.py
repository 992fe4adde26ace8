"""Tasks from a template and parameters: every combination of their values, the last one fastest.

`{name}` is the value of a parameter, `{2}` that of the second one, `{}` those of all. Suffixes take parts,
as for GNU parallel: `{.}` without the extension, `{/}` without the folder, `{//}` the folder, `{/.}` neither.
"""

from __future__ import annotations

import itertools
import math
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from adaptor.api import TaskInput
from adaptor.bagfile.parameters import Axis
from adaptor.did_you_mean import did_you_mean
from adaptor.errors import UsageError
from adaptor.option_kinds import plain_text

MAX_TASKS = 10_000_000
"""Tasks of one template; more is taken for a typing error."""

_TOKEN = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]|[^{}]+")


_PARTS: Mapping[str, Callable[[str], str]] = {
    "//": lambda path: posixpath.dirname(path) or ".",
    "/.": lambda path: posixpath.splitext(posixpath.basename(path))[0],
    "/": posixpath.basename,
    ".": lambda path: posixpath.splitext(path)[0],
}
"""By suffix, those that end with others first."""


class _Field(NamedTuple):
    """What stands for `{…}` in a template."""

    text: str
    names: Sequence[str]
    """Of the parameters whose values it shows, with a space between them."""
    part: str
    """A key of `_PARTS`, or empty."""

    def values(self, chosen: Mapping[str, str]) -> Iterator[str]:
        for name in self.names:
            yield _PARTS[self.part](chosen[name]) if self.part else chosen[name]


def expand(template: str, axes: Sequence[Axis], *, as_parallel: bool = False) -> list[TaskInput]:
    """One shell line for each combination of rows; the values are quoted for the shell.

    Args:
        as_parallel: as GNU parallel reads a command: braces that name no parameter stay as they are, and
            without a field all values follow the command.

    Raises:
        UsageError: an unknown or unused parameter, a lone brace, too many combinations, or a value that
            needs quoting where the template has quotes already.
    """
    if not template.strip():
        raise UsageError("--template: must not be empty; write a shell line, for instance 'render {scene}'")
    total = math.prod(len(axis.rows) for axis in axes)
    if total > MAX_TASKS:
        raise UsageError(f"--template: {total:,} combinations are more than {MAX_TASKS:,} tasks")
    names = [name for axis in axes for name in axis.names]
    pieces = list(_literal_or_field(_clean(template), names, as_parallel))
    used = {name for piece in pieces if isinstance(piece, _Field) for name in piece.names}
    if as_parallel and not used:
        pieces += [" ", _Field("", names, "")]
        used.update(names)
    unused = [name for axis in axes for name in axis.names if name not in used and not axis.table]
    if unused and not as_parallel:
        raise UsageError(f"--param {unused[0]}: not used; the template has no {{{unused[0]}}}")
    _check_quotes(pieces, axes)
    tasks = []
    for rows in itertools.product(*(axis.rows for axis in axes)):
        chosen = dict(zip(names, itertools.chain.from_iterable(rows), strict=True))
        line = (
            piece if isinstance(piece, str) else " ".join(map(shlex.quote, piece.values(chosen)))
            for piece in pieces
        )
        label = " ".join(
            value if key.isdecimal() else f"{key}={value}" for key, value in chosen.items() if key in used
        )
        tasks.append(TaskInput("".join(line), label or None))
    return tasks


def _literal_or_field(template: str, names: Sequence[str], as_parallel: bool) -> Iterator[str | _Field]:
    """The pieces of a template in their order."""
    for token in _TOKEN.findall(template):
        field = _field(token[1:-1], names) if token[0] == "{" and token[-1] == "}" else None
        if field is not None:
            yield field
        elif as_parallel or token[0] not in "{}":
            yield token
        elif token in ("{{", "}}"):
            yield token[0]
        elif token in ("{", "}"):
            raise UsageError(f"--template: unbalanced '{token}'; write '{token}{token}' for a literal brace")
        else:
            shown = token[1:-1][:60]
            meant = did_you_mean(shown, names, f"give -P {shown or 'NAME'}=…", shown="{{{}}}")
            raise UsageError(
                f"--template: no parameter for {{{shown}}} ({meant}; write '{{{{' for a literal brace)"
            )


def _field(text: str, names: Sequence[str]) -> _Field | None:
    """None: it names no parameter."""
    if text in names:
        return _Field(text, [text], "")
    part = next((suffix for suffix in _PARTS if text.endswith(suffix)), "")
    name = text.removesuffix(part)
    if name in names:
        return _Field(text, [name], part)
    if not name and names:
        return _Field(text, names, part)
    if name.isdecimal() and 0 < int(name) <= len(names):
        return _Field(text, [names[int(name) - 1]], part)
    return None


def _check_quotes(pieces: Sequence[str | _Field], axes: Sequence[Axis]) -> None:
    """Raises UsageError: a value would be quoted within quotes."""
    before = ""
    for piece in pieces:
        if isinstance(piece, str):
            before += piece
        elif mark := _open_quote(before):
            rows = (dict(zip(axis.names, row, strict=True)) for axis in axes for row in axis.rows)
            shown = (
                value
                for row in rows
                for value in piece._replace(names=[name for name in piece.names if name in row]).values(row)
            )
            if any(shlex.quote(value) != value for value in shown):
                raise UsageError(
                    f"--template: {{{piece.text}}} is inside {mark} … {mark}, and one of its values needs "
                    "quoting; remove those quotes, values are quoted automatically"
                )


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
