"""The part of the protocol that never changes: any command can see, reload and end any daemon.

A command and a daemon of different versions speak only of what is in this file. For ever hold:

* how the daemon is found: `daemon.lock` and `access-client.json` in the state directory
  (`daemon/lock.py`, `protocol/access.py`);
* how a message travels: TLS 1.3, each side with the certificate that the other one knows, and its length in
  4 bytes before it (`protocol/channel.py`). Both sides offer `PROTOCOL` by ALPN; the other questions pass
  only if it is the same;
* how a question and its answer look: a map with its name as `type`; a list of a `Failure`, or nil, and the
  answer (`api/question.py`);
* the names and types of all that is below. A field may be added if it has a default. None is removed or
  renamed, and none gets another type or another meaning;
* SIGTERM ends a daemon as `Stop` does.

`tests/api/test_frozen.py` has the bytes, and plays a daemon of an earlier version.
"""

from __future__ import annotations

import msgspec

from adaptor.api.question import KeyAccess, Question, Time


class DaemonView(msgspec.Struct, frozen=True, kw_only=True):
    """Identity and state of the running daemon, in a form that all versions read."""

    pid: int
    host: str
    version: str  # of the package
    started: Time = 0.0
    state_directory: str = ""
    workers: int = 0
    unfinished: int | None = None  # bags that have not ended; None: it does not say
    stalled: str = ""  # empty, or why nothing can be written down now (a full disk)
    until_idle: bool = False  # whether it ends when all bags have ended
    config_file: str = ""  # of the configuration; empty: there was none
    config_digest: str = ""  # of its content when it was loaded; empty: there was none
    config_problem: str = ""
    """Why the last reload failed after all, so that the one before it goes on; empty: it did not."""


class GetDaemon(Question[DaemonView], frozen=True):
    for_keys = KeyAccess.PUBLIC
    any_version = True


class Stop(Question[None], frozen=True):
    """End the daemon. `pilots`: cancel its pilots too; otherwise they go on and are met again."""

    any_version = True

    pilots: bool = False


class Reloading(msgspec.Struct, frozen=True):
    """Changes by a reload; the daemon does not answer for a moment, unless nothing changes."""

    file: str = ""
    digest: str = ""
    added: list[str] = []  # sites
    removed: list[str] = []
    changed: list[str] = []
    others: list[str] = []  # other sections of the file

    @property
    def any(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.others)


class Reload(Question[Reloading], frozen=True):
    """Take the configuration over as its file is now; answered once it was checked."""

    any_version = True
    takes_time = True
    writes = True
