"""A copy is what was packed, verified, and nothing beside its folder is written."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from adaptor.bag_spec import Bundle
from adaptor.bundles.environments import relocation_of
from adaptor.bundles.unpacking import DamagedBundleError, unpack
from tests.bundles.staged import archive_of, environment, packed


def unpacked(state: Path, bundle: Bundle, folder: Path) -> Path:
    with archive_of(state, bundle).open("rb") as archive:
        unpack(archive, bundle, str(folder), relocation_of(bundle, str(folder)))
    return folder


def test_a_copy_has_the_files_links_and_times(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    (data / "deep" / ("long" * 40)).write_bytes(os.urandom(3 << 20))
    (data / ("folder" * 40) / "é").mkdir(parents=True)
    (data / ("folder" * 40) / "é" / "file").write_text("far down")
    (data / "far").symlink_to(f"{'folder' * 40}/é/file")
    (data / "run").write_text("#!/bin/sh\n")
    (data / "run").chmod(0o755)
    (data / "beside").symlink_to("run")
    (data / "inside").symlink_to(data / "run")
    (data / "outside").symlink_to("/etc/hostname")
    os.utime(data / "run", (1e9, 1e9))
    copy = unpacked(tmp_path / "state", packed(tmp_path / "state", data), tmp_path / "copy") / "data"
    assert (copy / "deep" / ("long" * 40)).read_bytes() == (data / "deep" / ("long" * 40)).read_bytes()
    assert (copy / "far").read_text() == "far down"
    assert (copy / "run").stat().st_mtime == 1e9
    assert stat.S_IMODE((copy / "run").stat().st_mode) == 0o500
    links = {name: os.readlink(copy / name) for name in ("beside", "inside", "outside")}
    assert links == {"beside": "run", "inside": f"{copy}/run", "outside": "/etc/hostname"}


def test_a_copied_environment_names_itself(tmp_path: Path) -> None:
    venv = environment(tmp_path / ".venv")
    copy = unpacked(tmp_path / "state", packed(tmp_path / "state", venv), tmp_path / "copy") / ".venv"
    assert (copy / "bin" / "tool").read_text().startswith(f"#!{copy}/bin/python\n")
    assert os.fsencode(venv) in (copy / "lib" / "site-packages" / "binary.so").read_bytes()


@pytest.mark.parametrize("damage", ["a byte", "the end", "more", "no tar file"])
def test_a_damaged_archive_is_refused(tmp_path: Path, damage: str) -> None:
    (tmp_path / "data").write_bytes(os.urandom(10_000))
    bundle = packed(tmp_path / "state", tmp_path / "data")
    path = archive_of(tmp_path / "state", bundle)
    whole = path.read_bytes()
    path.write_bytes(
        {
            "a byte": whole[:3000] + b"!" + whole[3001:],
            "the end": whole[:3000],
            "more": whole + b"!",
            "no tar file": b"?" * 5000,
        }[damage]
    )
    with pytest.raises(DamagedBundleError, match="was changed after the bag was submitted"):
        unpacked(tmp_path / "state", bundle, tmp_path / "copy")


def member(name: str, kind: bytes = tarfile.REGTYPE, to: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, to
    return made


@pytest.mark.parametrize(
    "members",
    [
        [member("../evil")],
        [member("/evil")],
        [member("data/..")],
        [member("link", tarfile.SYMTYPE, ".."), member("link/evil")],
        [member("data", tarfile.DIRTYPE), member("data/../../evil")],
        [member("device", tarfile.CHRTYPE)],
        [member("one"), member("hard", tarfile.LNKTYPE, "one")],
        [member("one"), member("one")],
    ],
)
def test_nothing_is_written_beside_the_copy(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for each in members:
            archive.addfile(each)
    bundle = Bundle(sha256(file.getvalue()).hexdigest(), (), 1 << 20, 1)
    folder = tmp_path / "inner" / "copy"
    folder.parent.mkdir()
    with pytest.raises(DamagedBundleError):
        unpack(io.BytesIO(file.getvalue()), bundle, str(folder), relocation_of(bundle, str(folder)))
    assert [path.name for path in tmp_path.rglob("evil")] == []
    assert [path.name for path in folder.parent.iterdir()] == ["copy"]


def test_it_takes_no_more_than_its_bundle_says(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(1000))
    bundle = packed(tmp_path / "state", tmp_path / "data")
    smaller = Bundle(bundle.digest, bundle.items, 999, 1)
    with pytest.raises(DamagedBundleError, match="more data"):
        unpacked(tmp_path / "state", smaller, tmp_path / "copy")
