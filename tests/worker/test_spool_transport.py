"""A worker writes into no spool but its own user's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor.protocol.access import Access, Identity
from adaptor.protocol.spool.directory import DirectorySpool
from adaptor.protocol.spool.layout import address_of
from adaptor.worker.spool_transport import SpoolConnector
from adaptor.worker.transport import TransportError

ACCESS = Access(addresses=(), server="", own=Identity("", "secret"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_strangers_spool_is_refused(tmp_path: Path) -> None:
    spool = tmp_path / "spools" / "spool"
    DirectorySpool(spool)
    connector = SpoolConnector("7-n1-1", os.open(os.devnull, os.O_RDONLY), lambda _text: None)
    connector.connect(ACCESS, address_of(spool)).close(0)
    os.chown(spool, 54321, 54321)
    with pytest.raises(TransportError, match="belongs to user 54321"):
        connector.connect(ACCESS, address_of(spool))
    assert list((spool / "out").iterdir()) == []
