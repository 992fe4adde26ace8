"""Recorded answers of a real Slurm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from backends.slurm.nodes import Look, PartitionNodes, find_site
from backends.slurm.questions import Questions
from tests.backends.slurm.answers import FIXTURES, HEADER, MARK, RELEASES, Answers
from tests.backends.slurm.answers import recorded as recorded_of


@pytest.fixture
def recorded() -> Callable[[str], str]:
    """The text of a file in fixtures/slurm."""
    return lambda name: (FIXTURES / name).read_text(encoding="utf-8")


@pytest.fixture(params=RELEASES)
def answered(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Recorded answer of a release to a question of this name."""
    return recorded_of(request.param)


@pytest.fixture
def asked(answered: Callable[[str], str]) -> Questions:
    """The questions to a Slurm that answers as that release did."""
    return Questions(Answers(answered))


@pytest.fixture
def mixed(asked: Questions) -> PartitionNodes:
    """The partition `batch` of a cluster with memory, GPUs and features."""
    return find_site(asked.nodes(), "batch", Look(details=asked.node_details()))


@pytest.fixture
def fake_squeue(fake: Callable[[str, str], Path]) -> Callable[[str], Path]:
    """Makes `squeue` print its header and what these shell lines print, with the mark that is asked for."""
    mark = """mark=$(printf '%s\\n' "$@" | sed -n 's/.*,Name:0\\([^,]*\\),.*/\\1/p')"""
    header = f"[[ \" $* \" == *' -h '* ]] || echo '{HEADER.strip()}'"
    return lambda lines: fake(
        "squeue", f'set -o pipefail; {mark}\n{{ {header}\n{lines}\n}} | sed "s/{MARK}/$mark/g"'
    )


@pytest.fixture
def fake_sacct(fake: Callable[[str, str], Path]) -> Callable[[str], Path]:
    """Makes `sacct` print what these shell lines print, with the delimiter asked for in place of `|`."""
    delimiter = """delimiter=$(printf '%s\\n' "$@" | sed -n 's/^--delimiter=//p')"""
    return lambda lines: fake(
        "sacct", f'set -o pipefail; {delimiter}\n{{ {lines}\n}} | sed "s/|/$delimiter/g"'
    )
