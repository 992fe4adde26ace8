"""Single values as PBS prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from backends.numbers import utc_time, whole
from backends.observed.rows import Amounts

_SIZE = re.compile(r"(\d+)([kmgtp]?)([bw]?)", re.IGNORECASE)
_LIMIT = re.compile(r"""([uogp]):"?([^=\]"]+)"?=(\d+)""")
WORD = 8
"""Bytes of a word, in which sizes may be given."""


def parse_time(text: str) -> float:
    """Epoch seconds from epoch seconds, or from ctime(3) of a command that ran with TZ=UTC.

    Raises:
        ValueError: it is neither.
    """
    if text.isdecimal():
        return float(whole(text))
    return utc_time(text)


def parse_size(text: str) -> int:
    """Bytes from `4gb`, `1048576kb`, `2mw` or a plain number.

    Raises:
        ValueError: it is no size.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a size")
    unit = WORD if match[3].lower() == "w" else 1
    return whole(match[1]) * unit << 10 * " kmgtp".index(match[2].lower() or " ")


def number_of(id: str) -> str:
    """`12` of `12.server`: where the ids of one job are written in several ways."""
    return id.partition(".")[0]


def parse_vnodes(text: str) -> dict[str, Amounts]:
    """What is held by vnode, of an exec_vnode: `(n1:ncpus=2:mem=1gb)+(n3[0]:ncpus=2+n3[1]:ngpus=1)`.

    A vnode that serves several chunks is counted once, with the sum; one that is only kept from others, as on
    an exclusive machine, with nothing.

    Raises:
        ValueError: a number is no number.
    """
    found: dict[str, Amounts] = {}
    for part in text.replace("(", "").replace(")", "").split("+"):
        name, *resources = part.split(":")
        if name:
            amounts = parse_amounts(resources)
            found[name] = found[name] + amounts if name in found else amounts
    return found


def parse_amounts(resources: Iterable[str]) -> Amounts:
    """Of `ncpus=2`, `mem=1gb`, `ngpus=1` and others, which do not count here.

    Raises:
        ValueError: a number is no number.
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
    return tuple(dict.fromkeys(part.split("/")[0] for part in text.split("+") if part))


def parse_user_limit(text: str, user: str) -> int | None:
    """What `[u:PBS_GENERIC=3],[u:bob=5],[o:PBS_ALL=100]` allows a user; None where it says nothing of us.

    A limit for the user by name goes before the one for any user. One for all users together, or for any
    group or project, binds us too. A plain number (the older form) binds all users.
    """
    if text.strip().isdecimal():
        return whole(text)
    given = {(kind, name.strip()): whole(value) for kind, name, value in _LIMIT.findall(text)}
    own = given.get(("u", user), given.get(("u", "PBS_GENERIC")))
    shared = [given.get(key) for key in (("o", "PBS_ALL"), ("g", "PBS_GENERIC"), ("p", "PBS_GENERIC"))]
    found = [limit for limit in (own, *shared) if limit is not None]
    return min(found) if found else None
