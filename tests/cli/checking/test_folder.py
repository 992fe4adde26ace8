"""What a file system must do for the state directory is tested in it."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from adaptor.cli.checking.folder import check_folder, mount_of
from backends.findings import ok

MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
nas:/home /home nfs4 rw,vers=4.2,local_lock=none 0 0
nas:/old /home/old\\040ones nfs rw,nolock,vers=3 0 0
mds@tcp:/scratch /scratch lustre rw,flock 0 0
sshfs#x /far fuse.sshfs rw 0 0
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mounts"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("place", "kind", "option"),
    [
        ("/home/ann/state", "nfs4", "local_lock=none"),
        ("/home/old ones/x", "nfs", "nolock"),
        ("/homes", "ext4", "rw"),
        ("/scratch", "lustre", "flock"),
    ],
)
def test_the_mount_of_a_path(mounts: Path, place: str, kind: str, option: str) -> None:
    found, options = mount_of(Path(place), mounts)
    assert found == kind
    assert option in options


def test_a_file_system_of_this_machine_does_it_all(tmp_path: Path, mounts: Path) -> None:
    told = f"{tmp_path} (ext4): locks, renames, times of change and the journal work here"
    assert check_folder(tmp_path, mounts) == [ok(told)]
    assert not list(tmp_path.glob("check-*")), "nothing is left behind"


@pytest.mark.parametrize("line", ["nas:/h {} nfs rw,nolock 0 0", "x {} fuse.bindfs rw 0 0"])
def test_locks_that_do_not_reach_other_machines_are_told(tmp_path: Path, mounts: Path, line: str) -> None:
    mounts.write_text(MOUNTS + line.format(tmp_path) + "\n")
    (finding,) = check_folder(tmp_path, mounts)
    assert finding.level == "warning"
    assert "its locks may not reach other machines" in finding.text


def test_one_without_locks_is_no_place_for_the_state(
    tmp_path: Path, mounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    (finding,) = check_folder(tmp_path, mounts)
    assert finding.level == "error"
    assert "files cannot be locked (Function not implemented)" in finding.text


def test_a_folder_that_cannot_be_written(tmp_path: Path, mounts: Path) -> None:
    (finding,) = check_folder(tmp_path / "missing", mounts)
    assert (finding.level, finding.text) == (
        "error", f"{tmp_path}/missing: cannot be written: No such file or directory",
    )  # fmt: skip
