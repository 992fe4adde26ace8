"""The version follows from the tag of git, and is right where there is none."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from adaptor import __version__
from tests.packaging.source_copy import LONG, build, copy_source, run
from tests.source_tree import ROOT

pytestmark = pytest.mark.timeout(LONG)

BESIDE = [
    str(path.parent.relative_to(ROOT))
    for pattern in ("*", "plugins/*")
    for path in sorted(ROOT.glob(f"{pattern}/pyproject.toml"))
]
"""Distributions in folders of their own."""


def next_release(distribution: str = ".") -> str:
    text = (ROOT / distribution / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^fallback_version = "(.*)\.dev0"$', text, re.MULTILINE)
    assert found
    return found[1]


def version_of(tree: Path) -> str:
    return run(sys.executable, "-m", "setuptools_scm", where=tree).strip()


def test_a_tag_is_the_version_and_without_tags_it_counts_from_the_next_release(tmp_path: Path) -> None:
    tree = copy_source(tmp_path / "tree", tags=["v7.8.9"])
    assert version_of(tree) == "7.8.9"
    run("git", "tag", "--delete", "v7.8.9", where=tree)
    assert re.fullmatch(re.escape(next_release()) + r"\.dev[1-9]\d*\+g[0-9a-f]+", version_of(tree))
    shutil.rmtree(tree / ".git")
    assert version_of(tree) == f"{next_release()}.dev0"


def test_the_distributions_beside_it_have_its_version(tmp_path: Path) -> None:
    assert "plugins/mcp" in BESIDE
    assert {next_release(distribution) for distribution in BESIDE} == {next_release()}
    tree = copy_source(tmp_path / "tree", tags=["v7.8.9"])
    assert {version_of(tree / distribution) for distribution in BESIDE} == {"7.8.9"}
    sdist = build(tree / "plugins/mcp", tmp_path / "sdist", "--sdist")
    shutil.unpack_archive(sdist, tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert build(unpacked, tmp_path / "wheel", "--wheel").name == "request_adaptor_mcp-7.8.9-py3-none-any.whl"


def test_the_next_release_follows_the_newest_one_of_the_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in text
    releases = re.findall(r"^## \[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    newest = max((tuple(map(int, each)) for each in releases), default=(0, 0, 0))
    assert tuple(map(int, next_release().split("."))) > newest


def test_the_code_knows_the_version_of_its_package() -> None:
    from importlib.metadata import version

    if __version__ == "0+not.installed":
        pytest.skip("the package is not installed")
    assert __version__ == version("request-adaptor")
