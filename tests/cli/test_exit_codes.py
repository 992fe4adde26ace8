"""Every error is one line and an exit code; `--json` makes it one JSON value too."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from adaptor import api
from adaptor.cli.exit_codes import guarded
from adaptor.cli.main import program
from adaptor.errors import AdaptorError, BagFileError
from tests.cli.invoking import Cli, Serve


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nope"], "no command 'nope'"),
        (["statsu"], "did you mean 'status'?"),
        (["status", "--jsn"], "--jsn"),
        (["status", "7-3"], "'7-3' selects no bags"),
        (["cancel"], "BAGS"),
        (["watch", "--timeout", "soon"], "'soon' is not a duration"),
        (["results", "--task", "3-1"], "runs backwards; write 1-3"),
        (["results", "--task", "one"], "'one' is not a number or a range"),
        (["results", "--state", "lost"], "lost"),
        (["results", "--stdout", "--json"], "mutually exclusive"),
        (["why", "7", "--pilot", "2"], "mutually exclusive"),
        (["completion"], "no command"),
        (["daemon", "strat"], "did you mean 'start'?"),
    ],
)
def test_usage_errors(cli: Cli, arguments: list[str], problem: str) -> None:
    outcome = cli(*arguments)
    assert outcome.code == 2
    assert problem in outcome.err
    assert outcome.err.startswith("adaptor: ")
    assert outcome.err.count("\n") == 1


def test_errors_as_json(cli: Cli) -> None:
    outcome = cli("status", "--json", "--nope")
    assert outcome.code == 2
    assert "--nope" in outcome.value["error"]
    outcome = cli("status", "--daemon", "--json")
    assert outcome.code == 1
    assert "no daemon is running" in outcome.value["error"]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BagFileError("f:1: bad"), 2, "f:1: bad"),
        (AdaptorError("two\nlines"), 1, "two lines"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (OSError(28, "No space left on device"), 1, "adaptor: No space left on device"),
        (OSError(28, "No space left on device", "/st/f"), 1, "adaptor: /st/f: No space left on device"),
        (OSError("cannot be read"), 1, "adaptor: cannot be read"),
        (ZeroDivisionError("oops"), 1, "internal error: ZeroDivisionError: oops"),
    ],
)
def test_exit_codes(
    error: BaseException,
    code: int,
    line: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ADAPTOR_TRACEBACK")

    def fail() -> None:
        raise error

    assert guarded(fail, []) == code
    told = capsys.readouterr().err
    assert line in told
    assert told.count("\n") == 1


def test_a_traceback_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADAPTOR_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        guarded(lambda: 1 // 0, [])


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = [sys.executable, "-m", "adaptor.cli", "submit", "--help"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_every_command_has_help_and_an_example(cli: Cli) -> None:
    assert cli().code == 0
    context = click.Context(program)
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        names = command.list_commands(context) if isinstance(command, click.Group) else [""]
        for inner in names:
            outcome = cli(name, *filter(None, [inner]), "-h")
            assert outcome.code == 0
            assert "Example" in outcome.out, f"{name} {inner}"
        if isinstance(command, click.Group) and not command.invoke_without_command:
            assert cli(name).out == cli(name, "--help").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_and_what_they_ask(cli: Cli, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_ADAPTOR_COMPLETE", f"{shell}_source")
    assert f"_ADAPTOR_COMPLETE={shell}_complete" in cli().out


def test_completion_of_commands_and_selectors(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_ADAPTOR_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "adaptor sta")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "plain,status" in cli().lines
    monkeypatch.setenv("COMP_WORDS", "adaptor status l")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert "plain,last" in cli().lines


def test_a_question_at_fault_is_a_usage_error(cli: Cli, serve: Serve) -> None:
    serve({api.GetBags: api.Failure("there is no bag 9", usage=True)})
    outcome = cli("cancel", "9", "--json")
    assert outcome.code == 2
    assert outcome.value == {"error": "there is no bag 9"}
