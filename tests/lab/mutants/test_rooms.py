"""Which folders are rooms."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.mutants import rooms


def test_a_room_is_a_folder_of_modules_with_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("tidy", "untested", "__pycache__"):
        (tmp_path / "adaptor" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder).mkdir(parents=True)
    for folder in ("tidy", "untested"):
        (tmp_path / "adaptor" / folder / "more.py").write_text("")
    (tmp_path / "tests/tidy/test_more.py").write_text("def test_more():\n    pass\n")
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    assert [*rooms.rooms()] == ["tidy"]


def test_each_room_of_the_tree_has_modules() -> None:
    assert {"api", "backends", "crafting"} <= rooms.rooms().keys()
