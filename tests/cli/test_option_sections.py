"""The help of commands that take a bag: in sections, and the rare options on a page of their own."""

from __future__ import annotations

import pytest

from adaptor.bagfile.options import OPTIONS
from tests.cli.invoking import Cli


@pytest.mark.parametrize("command", ["submit", "run", "plan", "quote"])
def test_help_shows_the_usual_options_and_help_all_every_one(cli: Cli, command: str) -> None:
    short, long = cli(command, "--help"), cli(command, "--help-all")
    assert (short.code, long.code) == (0, 0)
    usual = {option.key for option in OPTIONS if option.section != "More"}
    rare = {option.key for option in OPTIONS if option.section == "More"}
    assert all(f"--{key} " in short.out for key in usual)
    assert not any(f"--{key} " in short.out for key in rare)
    assert all(f"--{key} " in long.out for key in usual | rare)
    assert short.out.index("Size of each task:") < short.out.index("Limits:") < short.out.index("Cost:")
    assert f"{command} --help-all shows" in short.out
