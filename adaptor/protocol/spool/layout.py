"""A mailbox: a folder that daemon and workers share where no connection can be opened between them.

    <room>/in/<box>.<number>            from workers: all in one folder, so that one look finds everything
    <room>/out/<box>/<life>.<number>    for one worker: a folder that it makes and removes

A **box** is one connection of one worker: `<pilot>-<token>-<n>`, where n counts the worker's
connections. A **life** is one run of the daemon. Whoever writes numbers its files from 1 for each box
(and life), so that no name is ever used twice and no cache of a shared file system can mislead.

Workers make nothing but their own `out/<box>`; the room itself is the daemon's.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

SCHEME = "mailbox://"
LATENCY = 5.0
"""Seconds that a message may ordinarily take from one side to the other."""
LARGEST = 65 * 1024 * 1024
"""Bytes of a file, at most; a larger one is not ours."""

_BOX = r"(?P<box>(?P<pilot>\d{1,18})-(?P<token>[0-9a-f]{8})-(?P<n>\d{1,9}))"
_LETTER = re.compile(_BOX + r"\.(?P<number>\d{8,12})", re.ASCII)
_BOX_ALONE = re.compile(_BOX, re.ASCII)
_ANSWER = re.compile(r"(?P<life>[0-9a-f]{8})\.(?P<number>\d{8,12})", re.ASCII)


class Box(msgspec.Struct, frozen=True):
    """One connection of one worker."""

    pilot: int
    token: str
    n: int
    """How many connections the worker has opened, this one included."""

    @property
    def name(self) -> str:
        return f"{self.pilot}-{self.token}-{self.n}"


def address_of(room: Path) -> str:
    """As it stands in an access file."""
    return f"{SCHEME}{room}"


def room_at(address: str) -> Path:
    """Raises ValueError: it is not the address of a mailbox."""
    path = Path(address.removeprefix(SCHEME))
    if not address.startswith(SCHEME) or not path.is_absolute():
        raise ValueError(f"{address}: not {SCHEME}/an/absolute/folder")
    return path


def inbox(room: Path) -> Path:
    """The folder of what workers have written."""
    return room / "in"


def outbox(room: Path, box: str) -> Path:
    """The folder of what is written for one worker."""
    return room / "out" / box


def letter_name(box: str, number: int) -> str:
    return f"{box}.{number:08d}"


def answer_name(life: str, number: int) -> str:
    return f"{life}.{number:08d}"


def parse_letter(name: str) -> tuple[Box, int] | None:
    """Box and number of a file in the inbox; None for a name that is not ours."""
    match = _LETTER.fullmatch(name)
    return (_box(match), int(match["number"])) if match else None


def parse_answer(name: str) -> tuple[str, int] | None:
    """Life and number of a file in an outbox; None for a name that is not ours."""
    match = _ANSWER.fullmatch(name)
    return (match["life"], int(match["number"])) if match else None


def parse_box(name: str) -> Box | None:
    match = _BOX_ALONE.fullmatch(name)
    return _box(match) if match else None


def _box(match: re.Match[str]) -> Box:
    return Box(int(match["pilot"]), match["token"], int(match["n"]))
