"""Errors that carry a message for a person: what is wrong, where, and the way out."""

from __future__ import annotations

from collections.abc import Sequence


class AdaptorError(Exception):
    """Base of every error that the command line shows without a traceback."""

    exit_code = 1


class UsageError(AdaptorError):
    """The user's input is at fault: arguments, a task file, the configuration."""

    exit_code = 2


class ConfigError(UsageError):
    """The site configuration is at fault; the message names the file, the line and the key."""


class VanishedSitesError(ConfigError):
    """Pilots or bags depend on sites that a configuration does not have any more."""


class BagFileError(UsageError):
    """A bag's file is at fault; the message names the file and the line."""


class ObstaclesError(BagFileError):
    """Several lines of a batch script are at fault."""

    def __init__(self, problem: str, lines: Sequence[str] = (), *, first: str = "") -> None:
        """`lines`: each obstacle, and the way out; `first`: the first of them alone."""
        super().__init__("\n  ".join((problem, *lines)))
        self.problem = problem
        self.lines = lines
        self.first = first


class UnknownBagError(UsageError):
    """The user, or a part of the adaptor, names a bag that is not in the journal."""

    def __init__(self, bag: int) -> None:
        super().__init__(f"there is no bag {bag}; `adaptor status all` lists them")


class NoDaemonError(AdaptorError):
    """No daemon answers for this state directory."""


class JournalError(AdaptorError):
    """The journal cannot be read or written, for instance on a full disk."""


def os_problem(error: OSError) -> str:
    """The system's message, after the file's name: `/st/keys.json: No space left on device`."""
    problem = error.strerror or str(error)
    return f"{error.filename}: {problem}" if error.filename else problem
