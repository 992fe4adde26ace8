"""Tasks from a template and parameters: every combination of their values, the last one fastest.

`{name}` is the value of a parameter, `{2}` that of the second one, `{}` those of all. Suffixes take parts,
as for GNU parallel: `{.}` without the extension, `{/}` without the folder, `{//}` the folder, `{/.}` neither.
People write parameters as `frame=1:100`, `scene=a,b`, `seed=@seeds.txt`, or as a table.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec

from adaptor.api import TaskInput
from adaptor.bagfile.parse import decode, read_data, source_name
from adaptor.did_you_mean import did_you_mean
from adaptor.errors import BagFileError, UsageError
from adaptor.option_kinds import plain_text
from adaptor.units import shortened

MAX_VALUES = 10_000_000  # values of one range; more is taken for a typing error

_NUMBER = r"-?\d{1,15}(?:\.\d{1,9})?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::({_NUMBER}))?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class Axis(msgspec.Struct, frozen=True):
    """Parameters that change together; those of different axes are combined with each other."""

    names: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    """The values, in the order of the names."""
    table: bool = False
    """True if it is a file, of which a template need not use all columns."""


def read_axes(parameters: Sequence[str], table: str | None = None) -> list[Axis]:
    """The axes of all `-P`, behind that of a CSV file. `+b=1,2` goes with the parameter before it.

    Raises:
        UsageError: a bad parameter or file, a name that comes twice, lists of different lengths.
    """
    axes = [read_table(table)] if table is not None else []
    for text in parameters:
        along = text.startswith("+")
        name, values = parse_parameter(text[1:] if along else text)
        if any(name in axis.names for axis in axes):
            raise UsageError(f"duplicate --param {name}; write {name}=a,b for several values")
        if along:
            if not axes:
                raise UsageError(f"--param +{name}: there is no parameter before it to go with")
            axes[-1] = _beside(axes[-1], f"--param +{name}", name, values)
        else:
            axes.append(Axis((name,), [(value,) for value in values]))
    return axes


SOURCES = (":::", "::::", ":::+", "::::+")
"""Words that begin a list of values on the command line, as for GNU parallel: the values, or files of them
(four colons); with `+` they go along with those before."""


def read_sources(words: Sequence[str], per_task: int = 1) -> list[Axis]:
    """The axes of `::: a b ::: 1 2`; their names are `1`, `2`, …

    Args:
        per_task: values of a task, where there is one list; the last task may have empty ones.

    Raises:
        UsageError: a list without values, lists of different lengths, an unreadable file.
    """
    axes: list[Axis] = []
    starts = [index for index, word in enumerate(words) if word in SOURCES]
    for place, (begin, end) in enumerate(zip(starts, [*starts[1:], len(words)], strict=True), 1):
        mark, given = words[begin], words[begin + 1 : end]
        files = mark.startswith("::::")
        if not given:
            raise UsageError(f"behind '{mark}': no values; for instance: adaptor run gzip {{}} ::: *.txt")
        where = f"behind '{mark}'"
        values = [value for path in given for value in _from_file(where, path)] if files else given
        values = _checked(where, values)
        if mark.endswith("+") and axes:
            axes[-1] = _beside(axes[-1], where, str(place), values)
        else:
            axes.append(Axis((str(place),), [(value,) for value in values]))
    if per_task == 1:
        return axes
    if len(axes) != 1 or len(axes[0].names) != 1:
        raise UsageError(f"-N {per_task}: for one list of values behind ':::'")
    flat = [value for (value,) in axes[0].rows]
    flat += [""] * (-len(flat) % per_task)
    rows = [tuple(flat[first : first + per_task]) for first in range(0, len(flat), per_task)]
    return [Axis(tuple(str(place) for place in range(1, per_task + 1)), rows)]


def _beside(axis: Axis, option: str, name: str, values: Sequence[str]) -> Axis:
    if len(values) != len(axis.rows):
        raise UsageError(
            f"{option}: {len(values):,} values for {len(axis.rows):,} of {axis.names[-1]}; "
            "parameters that go together need equally many"
        )
    rows = [(*row, value) for row, value in zip(axis.rows, values, strict=True)]
    return Axis((*axis.names, name), rows, axis.table)


def read_table(path: str) -> Axis:
    """A CSV file (`-`: standard input; `.tsv`: with tabs) whose first row names the columns.

    Raises:
        UsageError: it cannot be read, or a row has another number of values than the first.
    """
    source = source_name(path)
    try:
        text = decode(read_data(path), source)
        rows = list(_rows(text, source, "\t" if path.endswith(".tsv") else ","))
    except (BagFileError, csv.Error) as error:
        raise UsageError(f"--csv: {error}") from None
    if len(rows) < 2:
        raise UsageError(f"--csv: {source}: write the names of the columns, and a row for each task below")
    names = tuple(name.strip() for name in rows[0])
    for name in names:
        if not name or names.count(name) > 1:
            raise UsageError(f"--csv: {source}: each column needs a name of its own, in the first row")
    return Axis(names, rows[1:], table=True)


def _rows(text: str, source: str, delimiter: str) -> Iterator[tuple[str, ...]]:
    """Rows that are not blank, each as long as the first."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    width = None
    for row in reader:
        if not any(value.strip() for value in row):
            continue
        width = width or len(row)
        if len(row) != width:
            raise BagFileError(f"{source}:{reader.line_num}: {len(row)} values in a table of {width} columns")
        yield tuple(row)


def parse_parameter(text: str) -> tuple[str, list[str]]:
    """`NAME=VALUES` of one `-P`: items by comma, ranges `a:b[:step]` (both ends count), or `@file`.

    Raises:
        UsageError: no name, no value, an empty range, or an unreadable file.
    """
    name, equals, values = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise UsageError(f"--param {shortened(text)}: write NAME=VALUES, for instance frame=1:100")
    if values.startswith("@"):
        return name, _from_file(f"--param {name}", values[1:])
    _checked(f"--param {name}", [values])
    found = [value for item in values.split(",") for value in _item(name, item)]
    if not any(found):
        raise UsageError(f"--param {name}: no value; write {name}=1:100, {name}=a,b,c or {name}=@FILE")
    return name, found


def _item(name: str, item: str) -> list[str]:
    match = _RANGE.fullmatch(item)
    if match is None:
        return [item]
    first, last, step = Decimal(match[1]), Decimal(match[2]), Decimal(match[3] or 1)
    if step == 0 or (last - first) / step < 0:
        raise UsageError(f"--param {name}: {item} is an empty range; write {last}:{first}, or a step of -1")
    if (last - first) / step >= MAX_VALUES:
        raise UsageError(f"--param {name}: {item} is more than {MAX_VALUES:,} values")
    count = int((last - first) // step) + 1
    width = len(match[1]) if match[1].startswith("0") and match[1].isdigit() else 0
    return [str(first + step * index).zfill(width) for index in range(count)]


def _from_file(option: str, path: str) -> list[str]:
    """The lines of a file (`-`: standard input) that are not blank."""
    try:
        lines = decode(read_data(path), source_name(path)).split("\n")
    except BagFileError as error:
        raise UsageError(f"{option}: {error}") from None
    values = [line.rstrip("\r") for line in lines if line.strip()]
    if not values:
        raise UsageError(f"{option}: {source_name(path)} contains no value")
    return _checked(option, values)


def _checked(option: str, values: Sequence[str]) -> list[str]:
    try:
        return [plain_text(value) for value in values]
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


MAX_TASKS = 10_000_000  # tasks of one template; more is taken for a typing error

_TOKEN = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]|[^{}]+")


_PARTS: Mapping[str, Callable[[str], str]] = {
    "//": lambda path: posixpath.dirname(path) or ".",
    "/.": lambda path: posixpath.splitext(posixpath.basename(path))[0],
    "/": posixpath.basename,
    ".": lambda path: posixpath.splitext(path)[0],
}
"""Functions by suffix; suffixes that end with others come first."""


class _Field(NamedTuple):
    """The value of `{…}` in a template."""

    text: str
    names: Sequence[str]
    """Names of the parameters whose values it shows, with a space between them."""
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
        UsageError: an unknown or unused parameter, a lone brace, too many combinations, a line that is too
            long, or a value that needs quoting where the template has quotes already.
    """
    if not template.strip():
        raise UsageError("--template: must not be empty; write a shell line, for instance 'render {scene}'")
    total = math.prod(len(axis.rows) for axis in axes)
    if total > MAX_TASKS:
        raise UsageError(f"--template: {total:,} combinations are more than {MAX_TASKS:,} tasks")
    names = [name for axis in axes for name in axis.names]
    (clean,) = _checked("--template", [template])
    pieces = list(_literal_or_field(clean, names, as_parallel))
    used = {name for piece in pieces if isinstance(piece, _Field) for name in piece.names}
    unused = [name for axis in axes for name in axis.names if name not in used and not axis.table]
    if as_parallel and not used:
        pieces += [" ", _Field("", names, "")]
        used.update(names)
    elif unused and not as_parallel:
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
        try:
            tasks.append(TaskInput(plain_text("".join(line)), label or None))
        except ValueError as error:
            raise UsageError(f"--template: task {len(tasks)}: {error}") from None
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
    """The field in braces; None: it names no parameter."""
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
