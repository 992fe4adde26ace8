"""An installed adaptor has every file that its code reads."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("package", ["adaptor", "backends"])
def test_what_is_not_code_is_installed_too(package: str) -> None:
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"][package]
    there = {
        path
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    }
    installed = {path for pattern in patterns for path in (ROOT / package).glob(pattern)}
    assert there
    assert there <= installed
