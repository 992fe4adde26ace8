"""The journal's file has one writer, is private, and says so when it cannot be used."""

from __future__ import annotations

import stat
from contextlib import closing
from pathlib import Path

import pytest

from adaptor.errors import JournalError
from adaptor.journal.database import FILE, open_for_reading, open_for_writing


def test_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    open_for_writing(tmp_path).close()
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("second", [open_for_writing, open_for_reading])
def test_nobody_opens_it_beside_the_writer(tmp_path: Path, second: object) -> None:
    with closing(open_for_writing(tmp_path)), pytest.raises(JournalError, match="locked"):
        second(tmp_path)  # type: ignore[operator]
    open_for_writing(tmp_path).close()


def test_it_can_be_opened_again_after_it_was_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("this is not a database, it only has its name\n" * 100)
    for _ in range(2):
        with pytest.raises(JournalError, match="the journal is damaged"):
            open_for_writing(tmp_path)
    (tmp_path / FILE).unlink()
    open_for_writing(tmp_path).close()


def test_reading_where_nothing_was_ever_submitted(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="nothing was ever submitted"):
        open_for_reading(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_which_nothing_can_be_made(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be opened: No such file"):
        open_for_writing(tmp_path / "missing")
