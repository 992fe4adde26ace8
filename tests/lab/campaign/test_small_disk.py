"""A disk that is full, over quota or broken takes nothing, and takes it again when that is mended."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from lab.campaign.small_disk import SmallDisk, failing_disk, quota_disk, small_disk

_Disk = TypeVar("_Disk", bound=SmallDisk)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def mounted(
    stack: ExitStack, make: Callable[[Path, int], AbstractContextManager[_Disk | None]], path: Path
) -> _Disk:
    disk = stack.enter_context(make(path / "disk", 16))
    if disk is None:
        pytest.skip("it cannot be mounted here: not root, in a container without the right to, no Btrfs")
    return disk


def refused(disk: SmallDisk) -> str:
    """What is said to those who write."""
    with pytest.raises(OSError, match=r".*") as told:
        write(disk.path / "more")
    return errno.errorcode[told.value.errno or 0]


def write(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"x" * 65536)
        file.flush()
        os.fsync(file.fileno())


def test_it_is_filled_to_the_last_byte_and_freed(stack: ExitStack, tmp_path: Path) -> None:
    disk = mounted(stack, small_disk, tmp_path)
    disk.fill()
    assert refused(disk) == "ENOSPC"
    disk.free()
    (disk.path / "more").write_bytes(b"x" * 1000)


def test_it_is_made_read_only_and_writable(stack: ExitStack, tmp_path: Path) -> None:
    disk = mounted(stack, small_disk, tmp_path)
    assert disk.make_read_only()
    assert refused(disk) == "EROFS"
    disk.make_writable()
    (disk.path / "more").write_bytes(b"x")


def test_it_is_over_its_quota_and_within_it_again(stack: ExitStack, tmp_path: Path) -> None:
    disk = mounted(stack, quota_disk, tmp_path)
    (disk.path / "before").write_bytes(b"x" * 100_000)
    for _ in range(2):
        disk.exceed_quota()
        assert refused(disk) == "EDQUOT"
        disk.lift_quota()
        (disk.path / "more").write_bytes(b"x" * 100_000)


def test_it_fails_under_open_files_and_is_replaced(stack: ExitStack, tmp_path: Path) -> None:
    """What has reached the disk is there again, and nothing else."""
    disk = mounted(stack, failing_disk, tmp_path)
    with (disk.path / "written").open("wb", buffering=0) as file:
        file.write(b"reached")
        os.fsync(file.fileno())
        file.write(b", not reached")
        disk.fail()
        assert refused(disk) == "EROFS"
        disk.replace()
    assert (disk.path / "written").read_bytes() == b"reached"
    (disk.path / "more").write_bytes(b"x")


def test_it_is_gone_afterwards(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1):
        (tmp_path / "disk" / "file").write_text("x")
    assert not (tmp_path / "disk").is_mount()
