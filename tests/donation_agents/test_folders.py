"""What root finds, and makes, in a runtime folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor_donation_agents.folders import ROOT, UnsafeError, folder_of_root, open_runtime
from tests.donation_agents.users import OTHER, USER, needs_root

pytestmark = needs_root


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "runtime"
    place.mkdir(mode=0o755)
    return place


def test_in_the_folder_of_root_each_number_is_a_user(place: Path) -> None:
    for name in ("7", str(USER), "4294967295", "42949672950", "n1", "7x", "-7"):
        (place / name).mkdir()
    with open_runtime(str(place)) as runtime:
        assert sorted(runtime.users()) == sorted([7, USER, 4294967295])


def test_in_the_folder_of_a_user_that_user_alone_is_one(place: Path) -> None:
    for name in (str(USER), str(OTHER)):
        (place / name).mkdir()
    os.chown(place, USER, USER)
    with open_runtime(str(place)) as runtime:
        assert runtime.users() == [USER]


def test_root_gets_a_folder_in_that_of_a_user(place: Path) -> None:
    os.chown(place, USER, USER)
    runtime, folder = folder_of_root(str(place))
    with runtime, folder:
        folder.write("n1", {"a": 1})
    made = place / str(ROOT)
    assert ((made / "n1").stat().st_uid, made.stat().st_uid) == (ROOT, ROOT)


def test_root_gets_no_folder_that_a_user_has_made_for_it(place: Path) -> None:
    os.chown(place, USER, USER)
    (place / str(ROOT)).mkdir()
    os.chown(place / str(ROOT), USER, USER)
    with pytest.raises(UnsafeError, match="is not a folder of root alone; remove it"):
        folder_of_root(str(place))


def test_a_user_gets_a_folder_from_root_once(place: Path) -> None:
    with open_runtime(str(place)) as runtime:
        assert runtime.is_roots
        for _ in range(2):
            runtime.make_user_folder(USER)
        found = runtime.user_folder(USER)
        assert found is not None
        with found:
            found.write("use@n1", {})
    assert (place / str(USER)).stat().st_uid == USER
    assert [*(place / str(USER)).iterdir()] == [place / str(USER) / "use@n1"]
