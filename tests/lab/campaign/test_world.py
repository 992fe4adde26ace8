"""Processes are told apart by what they run."""

from __future__ import annotations

import pytest

from adaptor.processes.commands import isolated_command, module_command
from lab.campaign.world import runs

PYTHON = "/venv/bin/python"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (module_command(PYTHON, "adaptor.worker"), True),
        (module_command(PYTHON, "adaptor.worker", "--state", "/x"), True),
        (isolated_command(PYTHON, "adaptor.worker", "job.json"), True),
        (module_command(PYTHON, "adaptor.daemon"), False),
        (("srun", "--whole", *module_command(PYTHON, "adaptor.worker")), False),
        ((PYTHON, "script.py"), False),
        ((), False),
    ],
)
def test_whether_a_command_line_runs_a_module(command: tuple[str, ...], expected: bool) -> None:
    assert runs(list(command), "adaptor.worker") is expected
