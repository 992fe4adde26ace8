"""What passes between the daemon and one box of a mailbox: what has come, and what is to go."""

from __future__ import annotations

from adaptor.protocol.spool.exchange import Post
from adaptor.protocol.spool.flow import Incoming, Outgoing, Verdict
from adaptor.protocol.spool.layout import Box, answer_name
from adaptor.protocol.spool.seal import Envelope, Read, Seal


class Correspondence:
    def __init__(self, box: Box) -> None:
        self.box = box
        self.worker = b""
        """The name of the worker, once a letter of it was opened."""
        self.incoming = Incoming()
        self.outgoing = Outgoing()

    @property
    def due(self) -> bool:
        """Whether there is a file to be written."""
        return self.outgoing.due(self.incoming.last) is not None

    def judge(self, number: int, envelope: Envelope, now: float) -> Verdict:
        """What is to be done with a letter. `now`: monotonic seconds."""
        self.incoming.begin_at(envelope.oldest)
        return self.incoming.judge(number, now)

    def take(self, number: int, envelope: Envelope, life: str) -> None:
        """A letter was opened. `life`: the daemon's present one."""
        self.incoming.took(number)
        self.worker = envelope.worker.encode()
        if envelope.read is not None and envelope.read.life == life:
            self.outgoing.note_read(envelope.read.number)

    def post(self, life: str, seal: Seal) -> Post | None:
        """The next file for the worker, if there is one due."""
        file = self.outgoing.due(self.incoming.last)
        if file is None:
            return None
        name = answer_name(life, file.number)
        read = Read(self.box.name, file.read)
        envelope = Envelope(self.worker.decode(), file.messages, file.oldest, read)
        return Post(self.box.name, name, seal.close(f"out/{self.box.name}/{name}", envelope))
