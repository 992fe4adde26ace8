"""What is missing is named with the extra that brings it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adaptor.errors import AdaptorError
from adaptor.extras import PURPOSES, require_extra
from tests.source_tree import ROOT

CALL = re.compile(r'require_extra\("(\w+)", ((?:"\w+"(?:, )?)+)\)')


def brought() -> dict[str, set[str]]:
    """By extra: the libraries that pyproject.toml lists for it, those of extras that it names included."""
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed: dict[str, list[str]] = project["optional-dependencies"]

    def names(extra: str) -> set[str]:
        found = set()
        for requirement in listed[extra]:
            whole = re.fullmatch(r"request-adaptor\[(.*)\]", requirement)
            if whole:
                found.update(*map(names, whole[1].split(",")))
            else:
                found.add(re.split(r"[<>=]", requirement)[0].replace("-", "_"))
        return found

    return {extra: names(extra) for extra in listed}


def calls() -> list[tuple[Path, str, set[str]]]:
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "adaptor").rglob("*.py")}
    return [
        (path, extra, set(re.findall(r"\w+", libraries)))
        for path, text in texts.items()
        for extra, libraries in CALL.findall(text)
    ]


def test_each_library_that_a_command_asks_for_comes_with_the_extra_that_the_message_names() -> None:
    listed = brought()
    asked = calls()
    assert {extra for _, extra, _ in asked} == set(PURPOSES)
    assert not [(str(path), extra) for path, extra, libraries in asked if not libraries <= listed[extra]]


def test_the_message_names_what_is_missing_and_how_to_get_it() -> None:
    require_extra("web", "sys", "os")
    with pytest.raises(AdaptorError) as error:
        require_extra("web", "sys", "no_such_a", "no_such_b")
    assert str(error.value) == (
        "the live page needs no_such_a and no_such_b: python -m pip install 'request-adaptor[web]'"
    )
