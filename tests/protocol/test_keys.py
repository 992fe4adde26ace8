"""The keys of one daemon."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from adaptor.protocol.access import AccessError
from adaptor.protocol.keys import load_or_make_keys


def test_keys_are_made_once_and_kept_private(tmp_path: Path) -> None:
    keys = load_or_make_keys(tmp_path)
    assert load_or_make_keys(tmp_path) == keys
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600
    assert len({identity.key for identity in (keys.server, keys.worker, keys.client)}) == 3


@pytest.mark.parametrize("data", [b"{}", b'{"server": {"certificate": "\xff"}}'])
def test_a_damaged_key_file_is_told_with_the_way_out(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "keys.json").write_bytes(data)
    with pytest.raises(AccessError, match=r"keys\.json: damaged.*remove it"):
        load_or_make_keys(tmp_path)
