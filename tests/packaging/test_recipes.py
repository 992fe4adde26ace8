"""The recipes of docs/install.md name what the package depends on."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.source_tree import ROOT


def project() -> dict[str, Any]:
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return found


def section(heading: str) -> str:
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def in_spack(requirement: str) -> str:
    """`click>=8.2` → `py-click@8.2:`, `apscheduler>=3.11,<4` → `py-apscheduler@3.11:3`."""
    found = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,<(\d+))?", requirement)
    assert found, requirement
    name, least, below = found.groups()
    return f"py-{name}@{least}:{int(below) - 1 if below else ''}"


def test_the_spack_recipe_has_every_dependency_with_its_bounds() -> None:
    recipe = section("Spack")
    metadata = project()
    extras = metadata["project"]["optional-dependencies"]
    always = [in_spack(each) for each in metadata["project"]["dependencies"]]
    assert [each for each in always if f'depends_on("{each}")' not in recipe] == []
    optional = {
        (in_spack(each), extra) for extra in re.findall(r'variant\("(\w+)"', recipe) for each in extras[extra]
    }
    wanted = [f'depends_on("{each}", when="+{extra}")' for each, extra in sorted(optional)]
    assert [each for each in wanted if each not in recipe] == []
    builds = [in_spack(each) for each in metadata["build-system"]["requires"]]
    assert [each for each in builds if f'depends_on("{each}", type="build")' not in recipe] == []
    assert f'"python@{metadata["project"]["requires-python"].removeprefix(">=")}:"' in recipe
    found = set(re.findall(r'"(py-[\w-]+)@', recipe))
    assert len(found) == len(always) + len(builds) + len(optional), (
        "the recipe has a dependency that the package has not"
    )


def test_the_easybuild_list_has_every_dependency_before_the_package() -> None:
    listed = re.findall(r'^    \("?([\w-]+)"?, "?[\w.]+"?', section("EasyBuild"), re.MULTILINE)
    assert listed[-1] == "name"
    needed = [re.split("[<>=]", each)[0] for each in project()["project"]["dependencies"]]
    assert [each for each in needed if each not in listed] == []


def test_no_extra_is_missing_from_the_table() -> None:
    extras = project()["project"]["optional-dependencies"]
    assert [name for name in extras if f"| `{name}` |" not in section("Extras")] == []
