"""Channels of messages: URLs, which hold passwords and so stand in private files, and mail by `sendmail`."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
from email.message import EmailMessage
from pathlib import Path

from adaptor.errors import UsageError
from adaptor.private_files import NotOursError, open_ours

_PLACES = "/usr/sbin:/usr/lib:/usr/bin"


def sendmail() -> list[str]:
    """The command that sends a message from its standard input to the user who runs this process.

    Raises UsageError: there is no `sendmail`.
    """
    program = shutil.which("sendmail", path=_PLACES)
    if program is None:
        raise UsageError(
            f"--notify {ME} sends mail by sendmail, which this machine lacks; write a channel into the "
            f"configuration, such as `notify: {{channels: {{{ME}: {{file: ~/.notify}}}}}}`"
        )
    return [program, "-i", pwd.getpwuid(os.getuid()).pw_name]


def mail(title: str, body: str) -> bytes:
    """A message to the user, ready for `sendmail`."""
    message = EmailMessage()
    message["To"] = pwd.getpwuid(os.getuid()).pw_name
    message["Subject"] = " ".join(title.split())
    message.set_content(body)
    return bytes(message)


MARK = "@"  # begin of the path of a file with URLs, in the place of a channel's name
ME = "me"
"""The name of the channel that sends mail to the user by `sendmail`, unless the configuration has one."""
_MOST = 64 * 1024  # bytes


def read_urls(path: Path) -> list[str]:
    """The URLs of a private file, one a line; `#` begins a comment.

    Raises UsageError: it cannot be read, is not ours, is open to others, or has no URL.
    """
    try:
        with os.fdopen(open_ours(path, links=True, closed=True), "rb") as file:
            text = file.read(_MOST).decode()
    except NotOursError as error:
        raise UsageError(f"{path}: must be a file of yours alone: {error.strerror}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: the URLs of a notification cannot be read: {error}") from error
    lines = (line.strip() for line in text.splitlines())
    urls = [line for line in lines if line and not line.startswith("#")]
    if not urls:
        raise UsageError(f"{path}: has no URL; write one a line, such as mailto://… or json://…")
    return urls


def require_apprise() -> None:
    """Require the library that sends notifications. Raises UsageError: it is not installed."""
    if importlib.util.find_spec("apprise") is None:
        raise UsageError(
            "notifications need apprise: python -m pip install 'request-adaptor[notify]'; "
            "`hooks.on_bag_end` in the configuration needs nothing"
        )
