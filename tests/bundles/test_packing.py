"""One archive for one content; what cannot be packed is refused with its path."""

from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path
from typing import IO

import pytest

from adaptor.bag_spec import BUNDLES
from adaptor.bundles import packing
from adaptor.bundles.archives import is_there
from adaptor.bundles.packing import items_of
from adaptor.errors import UsageError
from tests.bundles.staged import archive_of, environment, packed


def test_the_same_content_is_one_archive_of_mode_0600(tmp_path: Path) -> None:
    folders = [tmp_path / name / "data" for name in ("one", "two")]
    for folder in folders:
        folder.mkdir(parents=True)
        for name in ("b", "a"):
            (folder / name).write_text(name)
            os.utime(folder / name, (1e9, 1e9))
        os.utime(folder, (1e9, 1e9))
    bundles = [packed(tmp_path / "state", folder) for folder in folders]
    assert bundles[0].digest == bundles[1].digest
    assert (bundles[0].files, bundles[0].size, bundles[0].executable) == (2, 2, False)
    (found,) = (tmp_path / "state" / BUNDLES).iterdir()
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert is_there(tmp_path / "state", bundles[0].digest)
    (folders[0] / "a").write_text("c")
    assert packed(tmp_path / "state", folders[0]).digest != bundles[0].digest


def test_an_environment_is_known_and_its_programs_need_a_disk_with_exec(tmp_path: Path) -> None:
    bundle = packed(tmp_path / "state", environment(tmp_path / ".venv"))
    assert [(item.name, item.environment) for item in bundle.items] == [(".venv", "venv")]
    assert bundle.executable
    (tmp_path / "conda" / "conda-meta").mkdir(parents=True)
    assert items_of([str(tmp_path / "conda")])[0].environment == "conda"


def test_a_link_that_is_staged_is_followed_and_known_by_both_paths(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "data").symlink_to("large")
    (item,) = items_of([str(tmp_path / "data")])
    assert (item.name, item.real) == ("data", str(tmp_path.resolve() / "large"))


def test_a_folder_that_is_named_twice_is_staged_once(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert len(items_of([str(tmp_path / "data"), f"{tmp_path}/./data"])) == 1


def test_the_state_directory_is_left_out(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "a").write_text("a")
    state = home / "state"
    bundle = packed(state, home)
    assert bundle.files == 1
    with tarfile.open(archive_of(state, bundle)) as archive:
        assert archive.getnames() == ["home", "home/a"]


def test_what_cannot_be_staged_is_refused_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, folder = tmp_path / "state", tmp_path / "data"
    folder.mkdir()
    with pytest.raises(UsageError, match=f"--stage: {tmp_path}/none: no such file or folder"):
        packed(state, tmp_path / "none")
    with pytest.raises(UsageError, match=r"has a backslash before it: 'a\\,b'$"):
        packed(state, folder, tmp_path / "none")
    with pytest.raises(UsageError, match="name a folder below it"):
        packed(state, Path("/"))
    (tmp_path / "other" / "data").mkdir(parents=True)
    with pytest.raises(UsageError, match="have the same name, under which tasks find them; rename one"):
        packed(state, folder, tmp_path / "other" / "data")
    os.mkfifo(folder / "pipe")
    with pytest.raises(UsageError, match=f"{folder}/pipe: is no file, folder or link"):
        packed(state, folder)
    (folder / "pipe").unlink()
    (folder / "large").write_bytes(bytes(100))
    monkeypatch.setattr(packing, "LARGEST", 99)
    with pytest.raises(UsageError, match="are staged; stage what all tasks"):
        packed(state, folder)
    monkeypatch.setattr(packing, "LARGEST", 1000)
    monkeypatch.setattr(packing, "MOST_FILES", 1)
    with pytest.raises(UsageError, match="more than 1 files or"):
        packed(state, folder)
    assert not list(state.glob(f"{BUNDLES}/*"))


def test_a_full_disk_is_named_before_and_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_bytes(bytes(1000))
    monkeypatch.setattr(packing, "_RESERVE", 1 << 62)
    with pytest.raises(UsageError, match=r"data: does not fit into .*/bundles: .* are left;"):
        packed(tmp_path / "state", tmp_path / "data")
    monkeypatch.setattr(packing, "_RESERVE", 0)

    def full(_file: object, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packing._Hashed, "write", full)
    with pytest.raises(UsageError, match="the archive cannot be written: No space left on device"):
        packed(tmp_path / "state", tmp_path / "data")
    assert not list((tmp_path / "state" / BUNDLES).iterdir()), "no half of it is left"


@pytest.mark.parametrize("change", ["longer", "shorter", "same size"])
def test_a_file_that_changes_meanwhile_is_no_part_of_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(100_000))
    real = packing.tarfile.TarFile.addfile

    def changed(archive: packing.tarfile.TarFile, member: packing.tarfile.TarInfo, file: IO[bytes]) -> None:
        size = {"longer": 200_000, "shorter": 10, "same size": 100_000}[change]
        path.write_bytes(b"x" * size)
        os.utime(path, (2e9, 2e9))
        real(archive, member, file)

    monkeypatch.setattr(packing.tarfile.TarFile, "addfile", changed)
    with pytest.raises(UsageError, match="has changed while it was packed; submit again"):
        packed(tmp_path / "state", path)
    assert not list((tmp_path / "state" / BUNDLES).iterdir())


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_text("hello")
    monkeypatch.setattr(packing, "_SAY_EVERY", 0.0)
    told: list[str] = []
    (tmp_path / "state").mkdir(mode=0o700)
    packing.pack([str(tmp_path / "data")], tmp_path / "state", told.append)
    assert told == [f"staging {tmp_path}/data: 1 file, 5B so far"]
