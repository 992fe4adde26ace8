"""An order that is none is refused with the reason, whatever is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaptor_donation_agents.records import Order, read_order

ORDER = {
    "tag": "t.1",
    "node": "n1",
    "p": 1,
    "tr": 60,
    "grace": 1,
    "worker": ["a"],
    "environment": {"A": "b"},
    "directory": "/x",
    "runtime": "/y",
}


def read(folder: Path, content: Any) -> Order:
    path = folder / "t.1.job.json"
    path.write_text(json.dumps(content))
    return read_order(path)


def test_an_order_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read(tmp_path, ORDER) == ORDER


@pytest.mark.parametrize("name", Order.__annotations__)
def test_each_part_must_be_there_and_of_its_type(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"no order: {name} missing, or of another type"):
        read(tmp_path, {key: value for key, value in ORDER.items() if key != name})
    with pytest.raises(ValueError, match=f"no order: {name} missing, or of another type"):
        read(tmp_path, {**ORDER, name: None})


@pytest.mark.parametrize("wrong", [{"worker": ["a", 1]}, {"environment": {"A": 1}}])
def test_words_and_variables_are_strings(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be strings"):
        read(tmp_path, {**ORDER, **wrong})


@pytest.mark.parametrize("wrong", [[], "order", 1, None])
def test_what_is_no_object_is_no_order(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ValueError, match="no order"):
        read(tmp_path, wrong)


@pytest.mark.parametrize("wrong", [{"node": "../n1"}, {"tag": "a/b"}])
def test_names_become_no_paths(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a name"):
        read(tmp_path, {**ORDER, **wrong})
