"""Two installations a month apart have the same libraries."""

from __future__ import annotations

import subprocess

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
    asked = ["make", "--dry-run", "--always-make", "install", "dev"]
    told = subprocess.run(asked, cwd=FILE.parent, capture_output=True, text=True, check=True).stdout
    installing = [line for line in told.splitlines() if "pip install" in line]
    assert len(installing) == 2
    assert all("--constraint constraints.txt" in line for line in installing)
    makefile = (FILE.parent / "Makefile").read_text(encoding="utf-8")
    assert "--constraints constraints.txt" in makefile, "the single file, too"
