"""Parsers of the output of PBS: single values, and attributes in two forms, as records of plain text. Pure.

`-F dsv`: one line per job, in which the delimiter, backslashes, line breaks and control characters are
escaped, so that nothing which a user wrote can end a line, or be taken for another value. The long form
(`-f`, `pbsnodes -a`): one line per attribute, long values broken.

`-F json` is not used. In release 23.06 of OpenPBS any user's job can make the whole answer invalid, and later
ones print but the first of several jobs that are asked for by id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from backends.base import SchedulerError
from backends.numbers import Row, not_understood, utc_time, whole
from backends.observed.rows import Amounts

_SIZE = re.compile(r"(\d+)([kmgtp]?)([bw]?)", re.IGNORECASE)
_LIMIT = re.compile(r"""([uogp]):"?([^=\]"]+)"?=(\d+)""")
WORD = 8  # bytes of a word, in which sizes may be given


def parse_time(text: str) -> float:
    """Epoch seconds from epoch seconds, or from ctime(3) of a command that ran with TZ=UTC.

    Raises ValueError: it is neither.
    """
    if text.isdecimal():
        return float(whole(text))
    return utc_time(text)


def parse_size(text: str) -> int:
    """Bytes from `4gb`, `1048576kb`, `2mw` or a plain number. Raises ValueError: it is no size."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a size")
    unit = WORD if match[3].lower() == "w" else 1
    return whole(match[1]) * unit << 10 * " kmgtp".index(match[2].lower() or " ")


_SELECTED = re.compile(r"\d+(\[\d*\])?(\.[\w.-]+)?")


def selected_ids(text: str) -> list[str]:
    """Ids in the output of `qselect`, one a line; other output of a site is no id."""
    return [line.strip() for line in text.splitlines() if _SELECTED.fullmatch(line.strip())]


def unknown_ids(errors: str, ids: Iterable[str]) -> set[str]:
    """The ids that qstat complains of not knowing: `qstat: Unknown Job Id 12.server`."""
    lines = (line for line in errors.splitlines() if "Unknown Job" in line)
    said = {number_of(word) for line in lines for word in line.split() if word[:1].isdigit()}
    return {id for id in ids if number_of(id) in said}


def number_of(id: str) -> str:
    """`12` of `12.server`: where the ids of one job are written in several ways."""
    return id.partition(".")[0]


def parse_vnodes(text: str) -> dict[str, Amounts]:
    """Amounts held by vnode, from an exec_vnode: `(n1:ncpus=2:mem=1gb)+(n3[0]:ncpus=2+n3[1]:ngpus=1)`.

    A vnode that serves several chunks is counted once, with the sum. A vnode that is only kept from others,
    as on an exclusive machine, is counted with nothing.

    Raises ValueError: a number is no number.
    """
    found: dict[str, Amounts] = {}
    if not text:
        return found
    for part in text.replace("(", "").replace(")", "").split("+"):
        name, *resources = part.split(":")
        if name:
            amounts = parse_amounts(resources)
            found[name] = found[name] + amounts if name in found else amounts
    return found


def parse_amounts(resources: Iterable[str]) -> Amounts:
    """Amounts in `ncpus=2`, `mem=1gb`, `ngpus=1`; others do not count.

    Raises ValueError: a number is no number.
    """
    values = dict(each.partition("=")[::2] for each in resources)
    return amounts_of(
        whole(values.get("ncpus", "0")), parse_size(values.get("mem", "0")), whole(values.get("ngpus", "0"))
    )


def amounts_of(processors: int, memory: int = 0, gpus: int = 0, type: str = "") -> Amounts:
    """`memory` in bytes; `type` of the GPUs, empty where it is not told."""
    return Amounts(processors, memory, ((type, gpus),) if gpus > 0 else ())


def parse_hosts(text: str) -> tuple[str, ...]:
    """The machines of an exec_host: `node01/0*2+node02/0*2`; each once."""
    return tuple(dict.fromkeys([part.split("/")[0] for part in text.split("+") if part])) if text else ()


def parse_user_limit(text: str, user: str, group: str = "") -> int | None:
    """Number of jobs that `[u:PBS_GENERIC=3],[u:bob=5],[g:chem=9],[o:PBS_ALL=100]` allows a user; None: it
    sets us no limit.

    A limit by name goes before the one for any user, group or project. One for all users together binds us
    too. A plain number (the older form) binds all users.

    Args:
        group: the user's first one, by which PBS counts; empty: not known.
    """
    found = parse_limits(text, user, group).values()
    return min(found) if found else None


def parse_limits(text: str, user: str, group: str = "") -> dict[str, int]:
    """Limits by who is counted together: `u` the user, `g` the group, `p` the project, `o` all users."""
    if text.strip().isdecimal():
        return {"u": whole(text)}
    given = {(kind, name.strip()): whole(value) for kind, name, value in _LIMIT.findall(text)}
    names = {"u": user, "g": group, "p": _NO_PROJECT, "o": "PBS_ALL"}
    found = {kind: given.get((kind, name), given.get((kind, "PBS_GENERIC"))) for kind, name in names.items()}
    return {kind: limit for kind, limit in found.items() if limit is not None}


_NO_PROJECT = "_pbs_project_default"  # name of the project of jobs for which none is named


_ESCAPED = re.compile(r"\\([\\|nf])")
_UNESCAPED = {"n": "\n", "f": "\f"}
_FIELD = re.compile(r"([^|\\]*(?:\\.[^|\\]*)*)(?:\||\Z)", re.DOTALL)
_ATTRIBUTE = r"([A-Za-z_][\w.-]*) = (.*)"


class PbsRecord(msgspec.Struct, frozen=True):
    """Attributes of one job, node, queue or server, as PBS prints them."""

    id: str
    values: dict[str, str]  # by name: `job_state`, `Resource_List.walltime`, …


def record_understood(kind: str, record: PbsRecord, make: Callable[[PbsRecord], Row]) -> Row:
    """The row that `make` makes of a record. Raises SchedulerError: `make` raised a ValueError or
    KeyError."""
    try:
        return make(record)
    except (ValueError, KeyError) as error:
        raise SchedulerError(
            f"PBS says of {kind} {record.id[:100]} what the adaptor cannot read: {str(error)[:200]}"
        ) from error


def parse_dsv(text: str, head: str) -> list[PbsRecord]:
    """Records in the output with `-f -F dsv`; `head` stands before each id, such as `Job Id: `.

    Raises SchedulerError: a line is not a record.
    """
    begin = text.find(f"\n{head}")
    if begin >= 0 and not text.startswith(head):  # text of the site before it
        text = text[begin:]
    # Not splitlines(): that would also break at characters which others may have written.
    return [dsv_record(line, head) for line in text.split("\n") if line.strip()]


def dsv_record(line: str, head: str) -> PbsRecord:
    """The record in one line of `parse_dsv`."""
    if not line.startswith(head):
        raise not_understood("PBS", line)
    rest = line[len(head) :]
    if "\\" not in rest:
        id, *fields = rest.split("|")
        return PbsRecord(id, dict([field.split("=", 1) for field in fields if "=" in field]))
    id, *fields = (match[1] for match in _FIELD.finditer(rest))
    pairs = (field.partition("=") for field in fields)
    return PbsRecord(id, {name: _plain(value) for name, is_pair, value in pairs if is_pair})


def lasting(line: bytes) -> bytes:
    """A line of `-f -F dsv` without what a job has used and for how long it has waited: they change, and
    do not matter as long as it says when the job started."""
    state = line.find(b"|job_state=")
    used = line.find(b"|resources_used.", 0, max(0, state))
    if used > 0 and line[used - 1] != _BACKSLASH and b"|stime=" in line:
        line = line[:used] + line[state:]
    waited = line.find(b"|eligible_time=")
    if waited > 0 and line[waited - 1] != _BACKSLASH:
        end = line.find(b"|", waited + 1)
        line = line[:waited] + (line[end:] if end >= 0 else b"")
    return line


_BACKSLASH = ord("\\")


def _plain(value: str) -> str:
    if "\\" not in value:
        return value
    return _ESCAPED.sub(lambda match: _UNESCAPED.get(match[1], match[1]), value)


def parse_long(text: str, head: str, indent: str = " {4,5}") -> list[PbsRecord]:
    """Records in the output with `-f` and, with an empty `head`, of `pbsnodes -a`.

    A line that starts with a tab goes on with the value before it. So does, where there is a `head`, any
    other line that is neither a head nor an attribute: a line break within the value.

    `indent`: the text before attributes, as a regular expression; `pbs_rstat` prints nothing there.

    Raises SchedulerError: there is text before the first record.
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


_ELEMENT = re.compile(r"(\d+)\[(\d*)\](.*)")  # `12[3].server`; of an array as a whole `12[].server`


def is_array(id: str) -> bool:
    return "[]" in id


def is_element(id: str) -> bool:
    """Whether it is a job of an array."""
    match = _ELEMENT.fullmatch(id)
    return match is not None and bool(match[2])


def element_index(id: str) -> int:
    """Index of a job in its array."""
    match = _ELEMENT.fullmatch(id)
    assert match is not None
    return whole(match[2])


def element_id(array: str, index: int) -> str:
    return array.replace("[]", f"[{index}]", 1)


def array_id(element: str) -> str:
    match = _ELEMENT.fullmatch(element)
    return element if match is None else f"{match[1]}[]{match[3]}"
