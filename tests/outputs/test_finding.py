"""Outputs are found without a question for each file."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from adaptor.outputs.finding import OutputPlace, Outputs, open_place, tail


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert Outputs(str(tmp_path / "none")).find(0, 1, "stdout") is None


def test_the_folder_is_listed_once(tmp_path: Path) -> None:
    outputs = Outputs(str(tmp_path))
    assert outputs.find(0, 1, "stdout") is None
    (tmp_path / "0.out").write_text("late")
    assert outputs.find(0, 1, "stdout") is None
    outputs.refresh()
    place = outputs.find(0, 1, "stdout")
    assert place is not None
    assert place.path == str(tmp_path / "0.out")


def test_when_a_folder_was_made(tmp_path: Path) -> None:
    """Some file systems do not know it."""
    assert Outputs(str(tmp_path / "none")).made_at() == math.inf
    assert Outputs(str(tmp_path / "none"), kept=False).made_at() is None
    (tmp_path / "-f").mkdir()
    made = Outputs(str(tmp_path / "-f")).made_at()
    assert made is None or abs(made - (tmp_path / "-f").stat().st_ctime) <= 1.0


def test_the_last_lines_of_an_output(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(5000)]
    text = "\n".join(lines)
    (tmp_path / "0.out").write_text(text)
    assert tail(OutputPlace(str(tmp_path / "0.out")), 3).splitlines() == lines[-3:]
    (tmp_path / "packed").write_text(f"{text}\nthat of another")
    assert tail(OutputPlace(str(tmp_path / "packed"), 0, len(text)), 3).splitlines() == lines[-3:]
    assert tail(OutputPlace(str(tmp_path / "packed"), len(text) + 1, 4)) == "that"
    assert tail(None) == ""


@pytest.mark.parametrize("index", ["0 5", "x 5 0.out", "0 5 0.out extra", "0 5 0.out"])
def test_a_line_of_an_index_that_is_cut_off_or_nonsense_does_not_count(tmp_path: Path, index: str) -> None:
    (tmp_path / "packed-n1-1.index").write_text(index)
    (tmp_path / "packed-n1-1.tar").write_text("hello")
    assert Outputs(str(tmp_path)).find(0, 1, "stdout") is None


def test_a_link_in_the_place_of_an_output_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "1.out").write_text("text")
    (tmp_path / "0.out").symlink_to("1.out")
    place = Outputs(str(tmp_path)).find(0, 1, "stdout")
    assert place is not None
    with pytest.raises(OSError, match="it is a link"):
        open_place(place)
    assert tail(place) == ""


def test_an_index_or_an_archive_that_is_a_link_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("0 5 0.out\n")
    (tmp_path / "packed-n1-1.index").symlink_to("elsewhere")
    (tmp_path / "packed-n1-1.tar").write_text("hello")
    assert Outputs(str(tmp_path)).find(0, 1, "stdout") is None


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_a_neighbour_has_put_there_is_not_read(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user has them: files, and a link in the place of the folder."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "0.out").write_text("forged")
    folder = tmp_path / "real"
    if what == "folder":
        folder = tmp_path / "link"
        folder.symlink_to("real")
    monkeypatch.setattr(os, "geteuid", lambda: folder.lstat().st_uid + 1)
    monkeypatch.setattr("adaptor.private_files._TRUSTED_LINKS", ())
    with pytest.raises(OSError, match="belongs to user" if what == "file" else "it is a link that user"):
        open_place(OutputPlace(str(folder / "0.out")))


def test_an_own_link_to_the_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "0.out").write_text("text")
    (tmp_path / "link").symlink_to("real")
    with open_place(OutputPlace(str(tmp_path / "link" / "0.out"), start=1)) as file:
        assert file.read() == b"ext"


def test_for_one_output_of_a_bag_that_is_not_packed_no_folder_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(_folder: str) -> list[str]:
        raise AssertionError("there may be 200,000 files")

    (tmp_path / "0.err").write_text("text")
    monkeypatch.setattr("adaptor.outputs.finding.os.listdir", listed)
    outputs = Outputs(str(tmp_path), packed=False)
    assert outputs.find_one(0, 1, "stderr") is not None
    assert outputs.find_one(1, 1, "stderr") is None
