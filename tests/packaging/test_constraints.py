"""Two installations a month apart have the same libraries."""

from __future__ import annotations

from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.constraints import EXTRAS, FILE, closure

PINNED = {
    canonicalize_name(requirement.name): requirement
    for line in FILE.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
    for requirement in [Requirement(line)]
}


def test_every_library_of_the_package_and_its_extras_has_one_version() -> None:
    needed = [*closure(["request-adaptor"], EXTRAS)]
    assert len(set(needed)) == len(needed), "also those whose extras others need"
    missing = [name for name in needed if name not in PINNED]
    assert set(missing) <= {"nvidia-ml-py"}, "not installed with the tools of developers"
    for requirement in PINNED.values():
        (only,) = requirement.specifier
        assert only.operator == "=="


def test_no_host_is_named() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--" not in text


def test_make_installs_these() -> None:
    makefile = (Path(FILE).parent / "Makefile").read_text(encoding="utf-8")
    installing = [line for line in makefile.replace("\\\n", " ").splitlines() if "pip install" in line]
    ours = [line for line in installing if "--editable" in line]
    assert ours
    assert all("--constraint constraints.txt" in line for line in ours)
    assert "--constraints constraints.txt" in makefile, "the single file, too"
