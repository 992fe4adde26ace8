"""A file of a newer version is named as such; a damaged one is left to whoever decodes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaptor.file_format import newer
from adaptor.processes.notes import FORMAT, parse_note, read_note, write_once
from backends.base import SchedulerError
from backends.local.store import Store


@pytest.mark.parametrize(
    "data",
    [b'{"format": 1}', b"{}", b"[3]", b'{"format": "2"}', b"", b"\xff", b"[" * 100_000],
)
def test_these_are_not_of_a_newer_version(data: bytes) -> None:
    assert newer(data, 1) == ""


def test_the_message_has_both_numbers_and_the_way_out() -> None:
    told = newer(b'{"format": 3, "else": {}}', 2)
    assert "has format 3" in told
    assert "formats up to 2" in told
    assert "ADAPTOR_DIR" in told
    assert newer(b'{"format": 3}', 3) == ""


def test_a_note_carries_its_number_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    write_once(tmp_path / "note", {"one": 1})
    assert read_note(tmp_path / "note") == {"format": FORMAT, "one": 1}
    with pytest.raises(ValueError, match="newer version"):
        parse_note(json.dumps({"format": FORMAT + 1}).encode())


def test_a_newer_note_of_a_local_job_is_not_set_aside_as_damaged(tmp_path: Path) -> None:
    """Setting it aside would end the processes of the job."""
    (tmp_path / "1.job.json").write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(SchedulerError, match=r"1\.job\.json: has format 2"):
        Store(tmp_path, 1.0).entries()
    assert [path.name for path in tmp_path.iterdir()] == ["1.job.json"]
