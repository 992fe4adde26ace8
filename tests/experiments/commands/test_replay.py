"""`adaptor trace` and `adaptor replay` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaptor.errors import UsageError
from adaptor_experiments.commands.replay import replay
from adaptor_experiments.commands.running import PROCESSORS
from adaptor_experiments.commands.trace import trace
from adaptor_simulation.files import TraceError
from adaptor_simulation.traces.swf import MOST_PROCESSORS
from tests.simulation.invoking_replay import call as run
from tests.simulation.swf_text import line

SMALL = Path(__file__).parents[3] / "fixtures" / "traces" / "small.swf"


def test_info_for_people():
    output = run(trace, "info", SMALL).output
    assert "400, of which 388 usable jobs" in output
    assert "64 (the header's MaxProcs)" in output
    assert "run-above-request" in output


def test_info_as_json():
    told = json.loads(run(trace, "info", SMALL, "--json", "--processors", 32).output)
    assert (told["rows"], told["processors"]) == (400, 32)


def test_a_replay_for_people_and_its_csv(tmp_path):
    result = run(replay, "trace", SMALL, "--scheduler", "easy", "--csv", tmp_path / "out.csv")
    assert "388 jobs kept" in result.output
    assert "64 processors (the header's MaxProcs), easy" in result.output
    rows = (tmp_path / "out.csv").read_text().splitlines()
    assert rows[0] == "job,submit,start,end,processors"
    assert len(rows) == 389


def test_a_replay_as_json_with_other_choices():
    output = run(replay, "trace", SMALL, "--json", "--missing-request", "run", "--overrun", "raise").output
    told = json.loads(output)
    assert told["kept"] == told["metrics"]["jobs"] == 390
    assert told["repairs"]["run-above-request"] == 6
    assert told["scheduler"] == "conservative"


def test_damaged_lines(tmp_path):
    path = tmp_path / "t.swf"
    path.write_text("; MaxProcs: 8\n" + line() + "oops\n")
    for group, command in ((trace, "info"), (replay, "trace")):
        with pytest.raises(TraceError, match=r"t\.swf:3: .*--lenient"):
            run(group, command, path)
        assert run(group, command, path, "--lenient").exit_code == 0


@pytest.mark.parametrize("content", ["", "\n", "; Computer: none\n", "; MaxProcs: 8\n"])
def test_an_empty_trace_is_told_as_such(tmp_path, content):
    path = tmp_path / "t.swf"
    path.write_text(content)
    for more in ((), ("--processors", "8")):
        with pytest.raises(TraceError, match=r"t\.swf: the trace is empty"):
            run(replay, "trace", path, *more)


@pytest.mark.parametrize(("group", "command"), [(replay, "trace"), (trace, "info")])
def test_a_machine_of_too_many_processors_is_refused(group, command):
    result = run(group, command, SMALL, "--processors", "99999999999999999999")
    assert result.exit_code == 2
    assert "not in the range" in result.output


def test_options_allow_the_machines_that_traces_may_have():
    assert PROCESSORS.max == MOST_PROCESSORS


def test_info_says_what_is_wrong_with_the_size_of_the_machine(tmp_path):
    path = tmp_path / "t.swf"
    path.write_text("; MaxProcs: 99999999999999999999\n" + line())
    assert (
        "processors        - (the header's MaxProcs is 99999999999999999999;"
        in run(trace, "info", path).output
    )


def test_usage_errors():
    assert run(replay, "trace", SMALL, "--scheduler", "fifo").exit_code == 2
    assert run(replay, "trace", SMALL, "--processors", "0").exit_code == 2
    assert run(trace, "info").exit_code == 2


def test_from_sacct_by_a_pipe(tmp_path):
    text = (
        "JobIDRaw|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS|State\n"
        "5|2026-01-01T00:00:10|2026-01-01T00:00:20|60|2|4|COMPLETED\n"
    )
    path = tmp_path / "site.swf.gz"
    arguments = ("from-sacct", "-o", path, "--processors", 16, "--zone", "Europe/Berlin")
    assert "1 jobs" in run(trace, *arguments, text=text).output
    assert "16 (the header's MaxProcs)" in run(trace, "info", path).output


def test_from_sacct_with_a_bad_zone_or_file(tmp_path):
    with pytest.raises(UsageError, match="--zone Mars/Base: no such time zone"):
        run(trace, "from-sacct", "-o", tmp_path / "t.swf", "--zone", "Mars/Base", text="x")
    with pytest.raises(UsageError, match=r"none\.txt: No such file"):
        run(trace, "from-sacct", tmp_path / "none.txt", "-o", tmp_path / "t.swf")


def test_the_commands_are_imported_without_numbers(tmp_path):
    """`adaptor --help` must not pay for numpy."""
    import subprocess
    import sys

    code = "import adaptor_experiments.commands.trace, adaptor_experiments.commands.replay, sys; "
    code += "sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0
