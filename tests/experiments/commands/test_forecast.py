"""What `adaptor replay forecast` prints, of ends and of starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor_experiments.commands.replay import replay
from tests.simulation.invoking_replay import call


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """One trace, whose jobs run a tenth of their limits."""
    lines = [
        f"{each + 1} {each * 50} {each * 50} 100 4 -1 -1 4 1000 -1 1 {each % 3} 1 1 1 1 -1 -1"
        for each in range(100)
    ]
    (tmp_path / "CTC-SP2.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    return tmp_path


def test_starts_are_measured_next_to_the_plan(traces: Path) -> None:
    command = (
        "forecast",
        "--traces",
        traces,
        "--starts",
        20,
        "--schedulers",
        "recorded,easy",
        "--processes",
        1,
    )
    result = call(replay, *command, "--output", traces / "out", "--scores")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert sum(" drawn " in line for line in lines) == 4, "two schedulers in two tables"
    assert not any("binomial bound" in line for line in lines), "too few waits are known"
    assert any(line.startswith('"start": (') for line in lines)
    again = call(replay, *command, "--output", traces / "out", "--scores")
    assert again.output == result.output, "what is finished is not run again"


def test_ends_are_calibrated_by_other_traces_and_by_the_past(traces: Path) -> None:
    result = call(replay, "forecast", "--traces", traces, "--bags", 1, "--processes", 1)
    assert result.exit_code == 0, result.output
    assert "calibrated by the other traces:" in result.output
    assert "by earlier bags of the trace, too:" in result.output
    assert result.output.count("all ") >= 8
