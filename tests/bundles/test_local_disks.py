"""The disk for copies: local, with room, and no other user's."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from adaptor.bag_spec import Bundle
from adaptor.bundles import local_disks
from adaptor.bundles.local_disks import disks_for, kind_of, own_folder, problem_with
from adaptor.private_files import NotOursError

SMALL = Bundle("d", (), 1000, 1)
PROGRAMS = Bundle("d", (), 1000, 1, executable=True)
MOUNTS = "22 1 8:1 / / rw shared:1 - ext4 /dev/sda rw\n23 22 0:40 / /home rw - nfs4 server:/home rw\n"


def test_the_disks_in_their_order() -> None:
    assert disks_for("", {}, None) == ["/tmp", "/var/tmp"]
    assert disks_for("", {"TMPDIR": "/scratch"}, None)[0] == "/scratch"
    assert disks_for("", {"TMPDIR": "/job/7"}, "/job/7")[-1] == "/job/7", "it goes with the job"
    assert disks_for("$SCRATCH/x", {"SCRATCH": "/local"}, None) == ["/local/x"]
    assert disks_for("${NONE}", {}, None) == [""]


def test_the_type_of_a_file_system() -> None:
    assert kind_of(MOUNTS, os.makedev(8, 1)) == "ext4"
    assert kind_of(MOUNTS, os.makedev(0, 40)) == "nfs4"
    assert kind_of(MOUNTS, os.makedev(0, 41)) == ""


def problem(
    folder: Path, bundle: Bundle = SMALL, memory: int = 10**9, mounts: str = "", named: bool = False
) -> str:
    return problem_with(str(folder), bundle, memory, mounts, named=named)


def mounted(folder: Path, kind: str) -> str:
    device = folder.stat().st_dev
    return f"22 1 {os.major(device)}:{os.minor(device)} / / rw - {kind} x rw\n"


def test_why_a_disk_takes_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert problem(tmp_path) == ""
    assert problem(tmp_path / "none") == f"{tmp_path}/none: No such file or directory"
    assert "node_folder" in problem_with("", SMALL, 0, "", named=True)
    assert "network file system (lustre)" in problem(tmp_path, mounts=mounted(tmp_path, "lustre"))
    assert problem(tmp_path, mounts=mounted(tmp_path, "lustre"), named=True) == ""
    assert "in memory, of which" in problem(tmp_path, memory=1000, mounts=mounted(tmp_path, "tmpfs"))
    assert problem(tmp_path, mounts=mounted(tmp_path, "tmpfs")) == ""
    assert "do not fit" in problem(tmp_path, Bundle("d", (), 1 << 60, 1))
    tmp_path.chmod(0o777)
    assert "no sticky bit" in problem(tmp_path)
    tmp_path.chmod(0o1777)
    assert problem(tmp_path) == ""
    real = os.statvfs(tmp_path)
    fields = {name: getattr(real, name) for name in dir(real) if name.startswith("f_")}
    noexec = SimpleNamespace(**{**fields, "f_flag": real.f_flag | os.ST_NOEXEC})
    monkeypatch.setattr(local_disks.os, "statvfs", lambda _path: noexec)
    assert problem(tmp_path, PROGRAMS) == f"{tmp_path}: mounted noexec, and the bundle has programs"
    assert problem(tmp_path) == "", "data needs no exec"


def test_what_others_put_in_the_place_of_our_folder_is_not_used(tmp_path: Path) -> None:
    path = Path(own_folder(str(tmp_path)))
    assert own_folder(str(tmp_path)) == str(path) == f"{tmp_path}/adaptor-{os.geteuid()}"
    path.chmod(0o755)
    with pytest.raises(NotOursError):
        own_folder(str(tmp_path))
    path.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    path.symlink_to("elsewhere")
    with pytest.raises(NotOursError):
        own_folder(str(tmp_path))
