"""What `adaptor site check` says of a mailbox in a folder of this machine."""

from __future__ import annotations

from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.protocol.spool.directory import DirectoryRoom
from adaptor.protocol.spool.exchange import Errand, MailRoomError
from adaptor.protocol.spool.files import remove_folder, write_file
from adaptor.protocol.spool.layout import Box, inbox, letter_name
from backends.findings import Finding, error, ok

_LETTER = letter_name(Box(0, "00000000", 1).name, 1)


def check_mailbox(site: SiteConfig) -> list[Finding]:
    """Writes a letter, reads it and removes it; nothing where the site has no mailbox here."""
    if site.mailbox is None or site.ssh is not None:
        return []
    folder = Path(site.mailbox).expanduser()
    room = folder / "check"
    try:
        postbox = DirectoryRoom(room)
        write_file(inbox(room) / _LETTER, b"a trial")
        found = [letter.data for letter in postbox.run(Errand()).letters]
    except (MailRoomError, OSError) as problem:
        return [error(f"mailbox: {problem}")]
    remove_folder(room)
    if b"a trial" not in found:
        return [error(f"mailbox: {folder}: what was written there cannot be read at once; is it cached?")]
    return [ok(f"mailbox {folder} is private and can be written; the nodes must see it too")]
