"""A daemon of another version: it understands the bytes that were recorded of one, and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from adaptor.protocol.access import CLIENT_ACCESS
from adaptor.protocol.channel import Party
from adaptor.protocol.keys import new_identity
from tests.living import PATIENCE
from tests.protocol.peers import FrameServer

RECORDED = Path(__file__).parents[2] / "fixtures" / "daemons"
EARLIER = RECORDED / "2026-11-26.json"
"""The last daemon before `adaptor/api/frozen.py`, which names no protocol."""


def recorded(path: Path = EARLIER) -> dict[bytes, bytes]:
    """Answers by their questions."""
    exchanges = json.loads(path.read_text(encoding="utf-8"))
    return {bytes.fromhex(each["asked"]): bytes.fromhex(each["answered"]) for each in exchanges}


class OtherDaemon:
    """Serves from its construction to `close`."""

    def __init__(
        self,
        directory: Path,
        answers: Mapping[bytes, bytes],
        *,
        protocol: str = "",
        changes: Mapping[str, Any] | None = None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """Args:
        protocol: which one it names; empty: none.
        changes: fields of its answer to GetDaemon that are other ones than recorded.
        on_stop: called before Stop is answered.
        """
        self.asked: list[str] = []
        self._answers, self._changes, self._on_stop = answers, changes or {}, on_stop
        server, client = new_identity("server"), new_identity("client")
        party = Party(server, client.certificate, server=True, protocol=protocol)
        self._frames = FrameServer(party, named=False)
        access = {
            "addresses": [f"tcp://127.0.0.1:{self._frames.port}"],
            "server": server.certificate,
            "own": {"certificate": client.certificate, "key": client.key},
            "of": "another version",
        }
        (directory / CLIENT_ACCESS).write_text(json.dumps(access))
        (directory / CLIENT_ACCESS).chmod(0o600)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._ended.is_set():
            if not self._frames.poll(0.02):
                continue
            peer, data = self._frames.receive()
            kind = msgspec.msgpack.decode(data)["type"]
            self.asked.append(kind)
            if kind == "Stop":
                self._on_stop()
            self._frames.send(peer, self._answer(kind, data))
        self._frames.close()

    def _answer(self, kind: str, data: bytes) -> bytes:
        if data not in self._answers:
            return msgspec.msgpack.encode([{"message": f"{kind} was not recorded"}, None])
        failure, answer = msgspec.msgpack.decode(self._answers[data])
        if kind == "GetDaemon":
            answer |= self._changes
        return msgspec.msgpack.encode([failure, answer])

    def close(self) -> None:
        self._ended.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
