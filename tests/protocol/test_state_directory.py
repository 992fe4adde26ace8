"""The state directory is private, or it is not used."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from adaptor.errors import AdaptorError
from adaptor.protocol.state_directory import private_directory, state_directory


def test_it_is_found_by_adaptor_dir_then_by_the_xdg_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ADAPTOR_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_directory() == tmp_path / "xdg" / "adaptor"
    monkeypatch.setenv("ADAPTOR_DIR", str(tmp_path / "named"))
    assert state_directory() == tmp_path / "named"


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = private_directory(tmp_path / "a" / "b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_one_that_is_open_to_others_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(0o750)
    with pytest.raises(AdaptorError, match="chmod 700"):
        private_directory(path)


def test_a_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AdaptorError, match="cannot be used"):
        private_directory(tmp_path / "file")


def test_ones_own_link_to_it_is_followed(tmp_path: Path) -> None:
    private_directory(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    assert private_directory(tmp_path / "link") == tmp_path / "link"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_strangers_link_to_a_private_folder_of_ours_is_refused(tmp_path: Path) -> None:
    private_directory(tmp_path / "secrets")
    (tmp_path / "link").symlink_to("secrets")
    os.lchown(tmp_path / "link", 54321, 54321)
    with pytest.raises(AdaptorError, match="link that user 54321 has made; name a folder of your own"):
        private_directory(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_strangers_folder_is_refused(tmp_path: Path) -> None:
    path = private_directory(tmp_path / "theirs")
    os.chown(path, 54321, 54321)
    with pytest.raises(AdaptorError, match="it belongs to user 54321; name a folder of your own"):
        private_directory(path)
