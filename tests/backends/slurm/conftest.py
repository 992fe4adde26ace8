"""Recorded answers of a real Slurm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backends.slurm.record import MARK

_FIXTURES = Path(__file__).parents[3] / "fixtures" / "slurm"


RELEASES = sorted(folder.name for folder in _FIXTURES.iterdir() if folder.name[:1].isdigit())
"""Those of which answers are recorded, each of the same scene (`tests.backends.slurm.record`)."""


@pytest.fixture
def recorded() -> Callable[[str], str]:
    """The text of a file in fixtures/slurm."""
    return lambda name: (_FIXTURES / name).read_text(encoding="utf-8")


@pytest.fixture(params=RELEASES)
def answered(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """What a release answered to a question of this name."""
    return lambda question: (_FIXTURES / request.param / f"{question}.txt").read_text(encoding="utf-8")


@pytest.fixture
def fake_squeue(fake: Callable[[str, str], Path]) -> Callable[[str], Path]:
    """Makes `squeue` print what these shell lines print, with the mark that is asked for."""
    mark = """mark=$(printf '%s\\n' "$@" | sed -n 's/^JobArrayID:0\\([^,]*\\),.*/\\1/p')"""
    return lambda lines: fake("squeue", f'set -o pipefail; {mark}\n{{ {lines}\n}} | sed "s/{MARK}/$mark/g"')


@pytest.fixture
def fake_sacct(fake: Callable[[str, str], Path]) -> Callable[[str], Path]:
    """Makes `sacct` print what these shell lines print, with the delimiter asked for in place of `|`."""
    delimiter = """delimiter=$(printf '%s\\n' "$@" | sed -n 's/^--delimiter=//p')"""
    return lambda lines: fake(
        "sacct", f'set -o pipefail; {delimiter}\n{{ {lines}\n}} | sed "s/|/$delimiter/g"'
    )
