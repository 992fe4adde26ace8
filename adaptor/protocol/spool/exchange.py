"""What the daemon has done in a mailbox, in one go: taken away, put in, and brought back what is new.

One errand is one question and one answer, so that a mailbox at the other end of an ssh connection
costs one round trip. `MailRoom` is who runs errands: here (`mailbox_directory`), or there
(`mailbox_distant`, which has `python -m adaptor.protocol.spool.remote_server` run them).
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from adaptor.errors import AdaptorError


class MailRoomError(AdaptorError):
    """The mailbox cannot be used now; the errand may have been run in part, and may be run again."""


class Post(msgspec.Struct, frozen=True, array_like=True):
    """A file for a worker."""

    box: str
    name: str
    data: bytes


class Letter(msgspec.Struct, frozen=True, array_like=True):
    """A file of a worker."""

    name: str
    data: bytes


class Errand(msgspec.Struct, frozen=True, kw_only=True):
    """In this order: remove, write, sweep, read."""

    done: list[str] = []
    """Letters that were taken in and can go."""
    posts: list[Post] = []
    pilots: list[int] | None = None
    """The pilots in the system, where boxes of all others are to be removed."""
    collect: bool = True
    """Whether to bring what workers have written."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    letters: list[Letter] = []
    """Sorted by number; all that lie there, those brought before included, unless `more`."""
    more: bool = False
    """Whether some were left for the next time."""
    gone: list[str] = []
    """Boxes among those of `posts` whose worker has removed them."""
    remarks: list[str] = []
    """What was passed over and why, for the log."""


class MailRoom(Protocol):
    """Calls block, and come one at a time. Each may raise MailRoomError."""

    def locate(self) -> Path:
        """The absolute path of the mailbox, as its workers are to be told."""

    def run(self, errand: Errand) -> Outcome:
        """In the order that `Errand` says."""

    def close(self) -> None:
        """Nothing more will be asked."""
