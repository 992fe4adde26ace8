"""A disk that is full takes nothing, and takes it again when it is freed."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaign.small_disk import SmallDisk, small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 1) as mounted:
        if mounted is None:
            pytest.skip("nothing can be mounted here: not root, or in a container without the right to")
        yield mounted


def test_it_is_filled_to_the_last_byte_and_freed(disk: SmallDisk) -> None:
    disk.fill()
    with pytest.raises(OSError, match=r".*") as told:
        (disk.path / "more").write_bytes(b"x")
    assert told.value.errno == errno.ENOSPC
    disk.free()
    (disk.path / "more").write_bytes(b"x" * 1000)


def test_it_is_made_read_only_and_writable(disk: SmallDisk) -> None:
    assert disk.make_read_only()
    with pytest.raises(OSError, match=r".*") as told:
        (disk.path / "more").write_bytes(b"x")
    assert told.value.errno == errno.EROFS
    disk.make_writable()
    (disk.path / "more").write_bytes(b"x")


def test_it_is_gone_afterwards(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1):
        (tmp_path / "disk" / "file").write_text("x")
    assert not (tmp_path / "disk").is_mount()
