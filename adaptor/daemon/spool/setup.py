"""Which sites have a mailbox, where it lies, and who looks after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.server import Message, Server
from adaptor.daemon.site_state import SiteState
from adaptor.daemon.spool.endpoint import Postman
from adaptor.errors import AdaptorError, JournalError
from adaptor.protocol.keys import Keys
from adaptor.protocol.spool.directory import DirectoryRoom
from adaptor.protocol.spool.exchange import MailRoom, MailRoomError
from adaptor.protocol.spool.layout import LATENCY
from adaptor.protocol.spool.remote import DistantRoom, Talk
from adaptor.protocol.spool.seal import Seal

Start = Callable[[Sequence[str]], Talk]
"""Starts a long-lived process on the site's machine."""


def mailbox_of(config: SiteConfig) -> str | None:
    """The folder for the mailboxes of a site; below the home directory there where it is relative."""
    if config.ssh is None:
        return config.mailbox
    if config.ssh.link != "mailbox":
        return None
    return config.mailbox or f"{config.ssh.directory}/mailbox"


def latency_of(config: SiteConfig) -> float:
    """Seconds that a message to or from a worker of the site may ordinarily take."""
    return LATENCY if mailbox_of(config) else 0.0


def open_room(name: str, config: SiteConfig, instance: str, start: Start) -> MailRoom:
    """A site's mailbox: a folder of its own, because several daemons and sites may share one place.

    Raises:
        AdaptorError: it is a folder here, and cannot be used.
    """
    folder = f"{mailbox_of(config)}/{instance}.{name}"
    if config.ssh is not None:
        words = (python_of(config), "-m", "adaptor.protocol.spool.remote_server", folder)
        return DistantRoom(lambda: start(words), float(config.command_timeout))
    try:
        return DirectoryRoom(Path(folder).expanduser())
    except MailRoomError as error:
        raise AdaptorError(f"sites.{name}.mailbox: {error}") from error


def hire_postman(
    site: SiteState,
    room: MailRoom,
    keys: Keys,
    server: Server,
    hear: Callable[[list[Message]], Awaitable[None]],
    stall: Callable[[JournalError], None],
) -> None:
    """Have a site's workers heard and answered through a mailbox."""

    def complain(problem: str) -> None:
        try:
            site.explain("problem", problem)
        except JournalError as error:
            stall(error)

    site.postman = Postman(
        room, Seal(keys.worker.secret), hear=hear, pilots=lambda: list(site.pilots), complain=complain
    )
    server.other_ways.append(site.postman.post)
