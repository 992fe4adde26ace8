"""The journal's file has one writer, is private, and says so when it cannot be used."""

from __future__ import annotations

import stat
import subprocess
import sys
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


AT_THE_LIMIT = """
import resource, sys
from pathlib import Path
from adaptor.errors import JournalError
from adaptor.journal.journal import Journal

journal = Journal(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
try:
    for _ in range(1000):
        journal.explain(1.0, "s", "problem", "x" * 10_000)
except JournalError as error:
    print(error)
"""


def test_a_limit_of_the_sizes_of_files_is_named(tmp_path: Path) -> None:
    words = [sys.executable, "-c", AT_THE_LIMIT, str(tmp_path)]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "may have 1048576 bytes, by `ulimit -f`" in told
