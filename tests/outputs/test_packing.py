"""The archives of workers: tar files with an index, whole after any crash."""

from __future__ import annotations

import errno
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.outputs import packing
from adaptor.outputs.finding import OutputPlace, Outputs, open_place
from adaptor.outputs.packing import Packer


def read(place: OutputPlace | None) -> bytes | None:
    if place is None:
        return None
    with open_place(place) as file:
        return file.read() if place.size is None else file.read(place.size)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    yield handle
    os.close(handle)


def test_two_workers_make_two_archives_and_each_output_is_found(tmp_path: Path, folder: int) -> None:
    packers = [Packer("n1", 5), Packer("n2", 5)]
    for task in range(20):
        (tmp_path / f"{task}.out").write_text(f"out {task}\n")
        (tmp_path / f"{task}.2.err").write_text(f"err {task}\n")
        packers[task % 2].pack([f"{task}.out", f"{task}.2.err"], folder)
    assert sorted(os.listdir(tmp_path)) == [
        "packed-n1-5.index", "packed-n1-5.tar", "packed-n2-5.index", "packed-n2-5.tar",
    ]  # fmt: skip
    outputs = Outputs(str(tmp_path))
    for task in range(20):
        assert read(outputs.find(task, 1, "stdout")) == f"out {task}\n".encode()
        assert read(outputs.find_one(task, 2, "stderr")) == f"err {task}\n".encode()
    assert outputs.find(3, 2, "stdout") is None


def test_tar_unpacks_an_archive(tmp_path: Path, folder: int) -> None:
    (tmp_path / "5.out").write_bytes(b"x" * 700)
    Packer("n/1", 7).pack(["5.out"], folder)
    with tarfile.open(tmp_path / "packed-n_1-7.tar") as archive:
        (member,) = archive.getmembers()
        data = archive.extractfile(member)
        assert data is not None
        assert (member.name, member.mode, data.read()) == ("5.out", 0o600, b"x" * 700)


def test_a_process_number_that_comes_again_gets_new_files(tmp_path: Path, folder: int) -> None:
    for task in range(2):
        (tmp_path / f"{task}.out").write_text(f"{task}")
        Packer("n1", 5).pack([f"{task}.out"], folder)
    assert [read(Outputs(str(tmp_path)).find(task, 1, "stdout")) for task in range(2)] == [b"0", b"1"]


def test_what_is_no_plain_small_file_of_ours_stays(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "LARGEST", 10)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "0.out").symlink_to("secret")
    os.link(tmp_path / "secret", tmp_path / "1.out")
    os.mkfifo(tmp_path / "2.out")
    (tmp_path / "3.out").write_text("x" * 11)
    (tmp_path / "4.out").write_text("")
    before = sorted(os.listdir(tmp_path))
    Packer("n1", 5).pack([f"{task}.out" for task in range(6)], folder)
    assert sorted(os.listdir(tmp_path)) == before


def test_archives_that_somebody_has_removed_are_made_anew(tmp_path: Path, folder: int) -> None:
    packer = Packer("n1", 5)
    for task in range(2):
        (tmp_path / f"{task}.out").write_text(f"{task}")
        packer.pack([f"{task}.out"], folder)
        if task == 0:
            (tmp_path / "packed-n1-5.tar").unlink()
    assert read(Outputs(str(tmp_path)).find(1, 1, "stdout")) == b"1"


@given(
    outputs=st.lists(st.binary(min_size=1, max_size=1500), min_size=1, max_size=6),
    budget=st.integers(0, 12_000),
)
def test_a_disk_that_fills_up_or_a_crash_at_any_byte_loses_nothing(outputs: list[bytes], budget: int) -> None:
    """After `budget` bytes every write fails; later the disk has room again. What a killed worker leaves at
    that byte is what is there in between."""
    left = budget

    def write(handle: int, data: memoryview) -> int:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, "no space left on device")
        count = min(left, len(data), 300)
        left -= count
        return real(handle, data[:count])

    def check() -> None:
        found = Outputs(str(home))
        assert [read(found.find(task, 1, "stdout")) for task in range(len(outputs))] == outputs

    real = os.write
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        home, packer = Path(name), Packer("n1", 5)
        handle = os.open(home, os.O_PATH | os.O_DIRECTORY)
        for task, data in enumerate(outputs):
            (home / f"{task}.out").write_bytes(data)
        patch.setattr(packing.os, "write", write)
        for task in range(len(outputs)):
            try:
                packer.pack([f"{task}.out"], handle)
            except OSError:
                check()
        left = 10**9
        packer.pack([f"{task}.out" for task in range(len(outputs))], handle)
        check()
        os.close(handle)
        assert len(os.listdir(home)) == 2
        with tarfile.open(home / "packed-n1-5.tar") as archive:
            assert len(archive.getnames()) == len(outputs)
