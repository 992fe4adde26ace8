"""What a wheel and a source distribution contain."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.packaging.source_copy import LONG, build, copy_source
from tests.source_tree import PACKAGES

pytestmark = pytest.mark.timeout(LONG)


def contents(wheel: Path) -> dict[str, str]:
    """Name and digest of each file, but for the list of them."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: hashlib.sha256(archive.read(name)).hexdigest()
            for name in archive.namelist()
            if not name.endswith("RECORD")
        }


@pytest.mark.parametrize("distribution", sorted({str(Path(package).parent) for package in PACKAGES[2:]}))
def test_the_wheel_of_another_package_has_all_that_its_code_reads(tmp_path: Path, distribution: str) -> None:
    place = copy_source(tmp_path / "tree") / distribution
    wanted = {str(path.relative_to(place)) for path in place.glob("adaptor_*/**/*") if path.is_file()}
    found = contents(build(place, tmp_path / "wheel", "--wheel"))
    assert {name for name in found if ".dist-info/" not in name} == wanted


def test_tree_and_source_distribution_build_the_same_wheel_with_all_that_the_code_reads(
    tmp_path: Path,
) -> None:
    tree = copy_source(tmp_path / "tree", tags=["v7.8.9"])
    sdist = build(tree, tmp_path / "sdist", "--sdist")
    wheel = build(tree, tmp_path / "wheel", "--wheel")
    assert (sdist.name, wheel.name) == (
        "request_adaptor-7.8.9.tar.gz",
        "request_adaptor-7.8.9-py3-none-any.whl",
    )
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    found = contents(wheel)
    assert contents(build(unpacked, tmp_path / "again", "--wheel")) == found

    wanted = {
        str(path.relative_to(tree))
        for package in ("adaptor", "backends")
        for path in (tree / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    pages = {name.rpartition("/share/doc/request-adaptor/")[2] for name in found if ".data/" in name}
    assert {
        "README.md",
        "docs/bags.md",
        "docs/reference/configuration.md",
        "docs/reference/commands.md",
    } <= pages
    assert {name for name in found if ".dist-info/" not in name and ".data/" not in name} == wanted
    assert {"LICENSE", "CHANGELOG.md", "docs/sites.md", "tests/packaging/test_distributions.py"} <= {
        str(path.relative_to(unpacked)) for path in unpacked.rglob("*")
    }
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
        assert archive.read(f"{Path(name).parent}/licenses/LICENSE").startswith(b"MIT License")
    assert metadata["Version"] == "7.8.9"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Author"] == "The Request Adaptor developers"
