"""The two forms in which PBS prints attributes, to records of plain text. Pure.

`-F dsv`: one line per job, in which the delimiter, backslashes, line breaks and control characters are
escaped, so that nothing which a user wrote can end a line, or be taken for another value. The long form
(`-f`, `pbsnodes -a`): one line per attribute, long values broken.

`-F json` is not used. In release 23.06 of OpenPBS any user's job can make the whole answer invalid, and later
ones print but the first of several jobs that are asked for by id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from backends.base import SchedulerError
from backends.numbers import Row, not_understood

_ESCAPED = re.compile(r"\\([\\|nf])")
_UNESCAPED = {"n": "\n", "f": "\f"}
_FIELD = re.compile(r"([^|\\]*(?:\\.[^|\\]*)*)(?:\||\Z)", re.DOTALL)
_ATTRIBUTE = r"([A-Za-z_][\w.-]*) = (.*)"


class PbsRecord(msgspec.Struct, frozen=True):
    """What PBS says of one job, node, queue or server."""

    id: str
    values: dict[str, str]
    """By name: `job_state`, `Resource_List.walltime`, …"""


def record_understood(kind: str, record: PbsRecord, make: Callable[[PbsRecord], Row]) -> Row:
    """Raises SchedulerError: `make` raised a ValueError or KeyError."""
    try:
        return make(record)
    except (ValueError, KeyError) as error:
        raise SchedulerError(
            f"PBS says of {kind} {record.id[:100]} what the adaptor cannot read: {str(error)[:200]}"
        ) from error


def parse_dsv(text: str, head: str) -> list[PbsRecord]:
    """Of `-f -F dsv`; `head` is what stands before each id, such as `Job Id: `.

    Raises:
        SchedulerError: a line is not a record.
    """
    # Not splitlines(): that would also break at characters which others may have written.
    return [_record(line, head) for line in text.split("\n") if line.strip()]


def _record(line: str, head: str) -> PbsRecord:
    if not line.startswith(head):
        raise not_understood("PBS", line)
    id, *fields = (match[1] for match in _FIELD.finditer(line[len(head) :]))
    pairs = (field.partition("=") for field in fields)
    return PbsRecord(id, {name: _plain(value) for name, is_pair, value in pairs if is_pair})


def _plain(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPED.sub(lambda match: _UNESCAPED.get(match[1], match[1]), value)


def parse_long(text: str, head: str, indent: str = " {4,5}") -> list[PbsRecord]:
    """Of `-f` and, with an empty `head`, of `pbsnodes -a`.

    A line that starts with a tab goes on with the value before it. So does, where there is a `head`, any
    other line that is neither a head nor an attribute: a line break within the value.

    Args:
        indent: what stands before attributes, as a regular expression; `pbs_rstat` prints nothing there.

    Raises:
        SchedulerError: there is text before the first record.
    """
    form = re.compile(indent + _ATTRIBUTE)
    records: list[PbsRecord] = []
    name = ""
    for line in text.split("\n"):
        attribute = form.fullmatch(line)
        if attribute and records:
            name = attribute[1]
            records[-1].values[name] = attribute[2]
        elif line.startswith("\t") and name:
            records[-1].values[name] += line[1:]
        elif line.startswith(head) and line.strip() and not line[0].isspace():
            records.append(PbsRecord(line[len(head) :].strip(), {}))
            name = ""
        elif line.strip() and not records:
            raise not_understood("PBS", line)
        elif line.strip() and name:
            records[-1].values[name] += "\n" + line
    return records


def comma_list(text: str) -> tuple[str, ...]:
    """The entries of `a, b,c`."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def variables(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of a `Variable_List`; commas within values have a backslash before them."""
    for pair in re.findall(r"(?:[^,\\]|\\.)+", text, re.DOTALL):
        name, _, value = pair.partition("=")
        yield name, re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
