"""Processes are told apart by what they run."""

from __future__ import annotations

import pytest

from tests.campaign.world import module_of


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("/venv/bin/python -m adaptor.worker", "adaptor.worker"),
        ("python3.11 -P -m adaptor.daemon --state /x", "adaptor.daemon"),
        ("srun --whole /venv/bin/python -m adaptor.worker", ""),
        ("/venv/bin/python script.py", ""),
        ("/venv/bin/python -m", ""),
        ("", ""),
    ],
)
def test_the_module_that_a_command_line_runs(line: str, module: str) -> None:
    assert module_of(line.split()) == module
