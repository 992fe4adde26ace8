"""Mail to the user by the `sendmail` of this machine: the channel `me`, unless one is configured."""

from __future__ import annotations

import os
import pwd
import shutil
from email.message import EmailMessage

from adaptor.errors import UsageError
from adaptor.notify.urls import ME

_PLACES = "/usr/sbin:/usr/lib:/usr/bin"


def sendmail() -> list[str]:
    """The command that sends a message from its standard input to the user who runs this process.

    Raises:
        UsageError: there is no `sendmail`.
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
