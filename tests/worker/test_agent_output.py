"""A worker and files that somebody put where its tasks' output goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor.protocol.messages import Ending
from tests.worker.fake_daemon import Harness, key, task


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("precious\n")
    return path


def test_a_link_in_the_place_of_an_output_file_is_not_followed(harness: Harness, precious: Path) -> None:
    harness.output.mkdir()
    (harness.output / "1.out").symlink_to(precious)
    (harness.output / "2.err").symlink_to(precious.with_name("new"))
    harness.started()
    harness.lease(*(task(n, f"echo {n}; echo {n} >&2") for n in (1, 2, 3)))
    assert harness.result(key(3)).exit_code == 0
    for n, name in ((1, "1.out"), (2, "2.err")):
        result = harness.result(key(n))
        assert result.ending is Ending.NOT_STARTED
        assert f"{harness.output}/{name}: " in (result.error or "")
        assert "link" in (result.error or "")
    assert precious.read_text() == "precious\n"
    assert not precious.with_name("new").exists()


def test_another_name_of_a_file_is_not_written(harness: Harness, precious: Path) -> None:
    harness.output.mkdir()
    os.link(precious, harness.output / "1.out")
    harness.started()
    harness.lease(task(1, "echo out"))
    assert harness.result(key(1)).ending is Ending.NOT_STARTED
    assert precious.read_text() == "precious\n"


@pytest.mark.parametrize("reader", [False, True])
def test_a_fifo_stops_no_other_task(harness: Harness, reader: bool) -> None:
    harness.output.mkdir()
    fifo = harness.output / "1.out"
    os.mkfifo(fifo)
    handle = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK) if reader else None
    try:
        harness.started()
        harness.lease(*(task(n, f"echo {n}") for n in (1, 2)))
        assert harness.result(key(2)).exit_code == 0
        result = harness.result(key(1))
        assert result.ending is Ending.NOT_STARTED
        assert result.error == f"{fifo}: the task's output cannot be written: it is no plain file"
    finally:
        if handle is not None:
            os.close(handle)
