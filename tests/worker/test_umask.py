"""Tasks and the files of their output have the file mode mask of the submitting shell, as under sbatch."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from adaptor.worker import umask
from tests.worker.fake_daemon import Harness, key, task


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_each_bag_has_its_own_mask_in_one_worker(harness: Harness) -> None:
    masks = {1: 0o077, 2: 0o002, 3: 0o027}
    bags = [harness.bag(bag, output=str(harness.folder / f"out{bag}"), umask=masks[bag]) for bag in masks]
    harness.started(ADAPTOR_PROCESSORS=3)
    keys = [msgspec.structs.replace(key(number), bag=bag) for number in range(1, 7) for bag in masks]
    leases = [
        msgspec.structs.replace(task(each.task, f"umask; : > made-{each.bag}-{each.task}"), key=each)
        for each in keys
    ]
    harness.lease(*leases, bags=bags)
    for each in keys:
        assert harness.result(each).exit_code == 0
        mask = masks[each.bag]
        folder = harness.folder / f"out{each.bag}"
        assert mode(folder) == 0o777 & ~mask
        assert mode(folder / f"{each.task}.out") == 0o666 & ~mask
        assert int((folder / f"{each.task}.out").read_text(), 8) == mask
        assert mode(harness.cwd / f"made-{each.bag}-{each.task}") == 0o666 & ~mask


def test_where_threads_share_one_mask_files_are_as_private_as_those_of_the_most_private_bag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(unshare=lambda _: -1))
    before = os.umask(0o022)
    try:
        umask.keep(0o007)
        umask.keep(None)
        assert os.umask(before) == 0o027
    finally:
        os.umask(before)
