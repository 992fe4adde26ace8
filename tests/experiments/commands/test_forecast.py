"""What `adaptor replay forecast` prints, of ends and of starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

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


def test_any_trace_can_be_named(traces: Path) -> None:
    own = (traces / "CTC-SP2.swf").rename(traces / "my site.swf")
    common = ("--starts", 20, "--schedulers", "recorded", "--span", "0.5-1", "--processes", 1)
    named = call(replay, "forecast", "--trace", own, *common, "--output", traces / "out")
    assert named.exit_code == 0, named.output
    assert "my site  recorded   past waits by shape" in named.output
    folder = call(replay, "forecast", "--traces", traces, *common, "--output", traces / "folder")
    assert folder.output == named.output, "a folder without the published traces has its own"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--traces", "."), "no trace (*.swf, *.swf.gz, *.swf.xz) in"),
        (("--trace", "gone.swf"), "gone.swf: No such file"),
        (("--trace", "CTC-SP2.swf", "--trace", "two/CTC-SP2.swf.gz"), "have one name; rename one"),
        (("--processors", "8"), "--processors is for a --trace FILE"),
        (("--span", "0.5-1"), "--span is for --starts N"),
        (("--span", "7"), "'7' is no part of a trace; from 0 to 1, such as 0.5-1"),
    ],
)
def test_what_cannot_be_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(replay, ["forecast", *given])
    assert told in (result.output + str(result.exception)).replace("\n", " ")
