"""Numbers of bags that others have taken by making their output folders first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor.outputs.packing import numbers_of_others


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which another user has made some."""
    for name in ("adaptor-7", "adaptor-9", "adaptor-", "adaptor-x", "adaptor-8.old", "my-adaptor-10"):
        (tmp_path / name).mkdir()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    return tmp_path


def test_folders_of_others_are_found(shared: Path) -> None:
    assert numbers_of_others(f"{shared}/adaptor-{{bag}}") == (7, 9)


@pytest.mark.parametrize("output", ["results-{bag}", "results", "adaptor-{bag}/all", "none/adaptor-{bag}"])
def test_a_folder_that_a_person_has_named_may_be_a_groups(shared: Path, output: str) -> None:
    assert numbers_of_others(f"{shared}/{output}") == ()


def test_our_own_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "adaptor-7").mkdir()
    assert numbers_of_others(f"{tmp_path}/adaptor-{{bag}}") == ()
