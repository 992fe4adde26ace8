"""Errors that carry a message for a person: what is wrong, where, and the way out."""

from __future__ import annotations


class AdaptorError(Exception):
    """Base of every error that the command line shows without a traceback."""

    exit_code = 1


class UsageError(AdaptorError):
    """The user's input is at fault: arguments, a task file, the configuration."""

    exit_code = 2


class ConfigError(UsageError):
    """The site configuration is at fault; the message names the file, the line and the key."""


class BagFileError(UsageError):
    """A bag's file is at fault; the message names the file and the line."""


class NoDaemonError(AdaptorError):
    """No daemon answers for this state directory."""


class JournalError(AdaptorError):
    """The journal cannot be read or written, for instance on a full disk."""
