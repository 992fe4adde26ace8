"""What a backend tells a worker."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from adaptor.worker.given import AskedOfNode
from adaptor.worker.settings import REACH_TIMEOUT, SettingsError, read_settings

GOOD = {
    "ADAPTOR_ACCESS": "/s/access-worker.json",
    "ADAPTOR_PILOT": "7",
    "ADAPTOR_PILOT_END": "1000.5",
    "ADAPTOR_PROCESSORS": "4",
    "ADAPTOR_NODE": "n1",
    "ADAPTOR_DIRECTORY": "/s/pilots/7",
}


def test_what_may_be_left_out() -> None:
    settings = read_settings(GOOD)
    assert (settings.pilot, settings.processors, settings.deadline) == (7, 4, 1000.5)
    assert settings.asked == AskedOfNode(4, None, 0)
    assert settings.reach_timeout == REACH_TIMEOUT
    assert settings.env_before is None


def test_what_may_be_said() -> None:
    more = {
        "ADAPTOR_MEMORY": "5",
        "ADAPTOR_GPUS": "2",
        "ADAPTOR_ENV_BEFORE": "/e",
        "ADAPTOR_REACH_TIMEOUT": "1",
        "ADAPTOR_PILOT_END": "inf",
    }
    settings = read_settings({**GOOD, **more})
    assert (settings.memory, settings.env_before, settings.reach_timeout) == (5, Path("/e"), 1.0)
    assert settings.deadline == math.inf
    assert settings.asked == AskedOfNode(4, 5, 2)


def test_a_node_name_is_no_path() -> None:
    assert read_settings({**GOOD, "ADAPTOR_NODE": "../n1"}).file_node == ".._n1"


@pytest.mark.parametrize("name", list(GOOD))
def test_what_may_not_be_left_out(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is not set"):
        read_settings({**GOOD, name: ""})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ADAPTOR_PROCESSORS", "0"),
        ("ADAPTOR_PROCESSORS", "x"),
        ("ADAPTOR_MEMORY", "-1"),
        ("ADAPTOR_PILOT_END", "soon"),
    ],
)
def test_what_is_wrong_is_named(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}: '{text}' is invalid"):
        read_settings({**GOOD, name: text})
