from __future__ import annotations

import functools
import pickle
from pathlib import Path
from typing import Any

import pytest

from adaptor.api import TaskEvent
from adaptor.executor.pickling import CallError, file_of, name_of, outcome_of, task_of
from adaptor.executor.resources import CallTerms
from adaptor.protocol.messages import ERROR, TEXT, VALUE


def event(answer: bytes | None = None, **more: Any) -> TaskEvent:
    values = {"exit_code": 0, "signal": None, "error": None, **more}
    return TaskEvent(
        task=3, event=1, state="done", attempt=1, started=0.0, wall=0.0, node=None, answer=answer, **values
    )


def test_short_calls_are_in_the_task_and_long_ones_in_a_private_file(tmp_path: Path) -> None:
    short = task_of("f", (len, ("x",), {}), tmp_path, CallTerms())
    assert (short.command, file_of(short.call)) == ("f", "")
    long = task_of("f", (len, (bytes(10**6),), {}), tmp_path / "made", CallTerms())
    path = tmp_path / "made" / file_of(long.call)
    assert path.stat().st_mode & 0o777 == 0o600
    function, args, kwargs = pickle.loads(path.read_bytes())
    assert function(*args, **kwargs) == 10**6


def test_values_and_errors_come_from_the_answer_or_its_file(tmp_path: Path) -> None:
    assert outcome_of(7, event(VALUE + pickle.dumps([1])), tmp_path).value == [1]
    (tmp_path / "3.1.result").write_bytes(pickle.dumps(KeyError("x")))
    error = outcome_of(7, event(ERROR.upper() + b"3.1.result"), tmp_path).error
    assert isinstance(error, KeyError)
    assert not list(tmp_path.iterdir())


def test_an_error_as_text_keeps_its_traceback(tmp_path: Path) -> None:
    error = outcome_of(7, event(TEXT + pickle.dumps(("Odd", "Odd: 1", "line 1\nline 2"))), tmp_path).error
    assert isinstance(error, CallError)
    assert str(error) == "Odd: 1"
    assert "line 2" in str(error.__cause__)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (event(exit_code=None, signal=9), "killed"),
        (event(exit_code=3), "exit 3"),
        (event(exit_code=None, error="no such program"), "no such program"),
        (event(VALUE + b"nonsense"), "cannot be unpickled"),
        (event(b"?" + pickle.dumps(1)), "another version"),
    ],
)
def test_what_has_no_result_says_why(tmp_path: Path, told: TaskEvent, words: str) -> None:
    error = outcome_of(7, told, tmp_path).error
    assert isinstance(error, CallError)
    assert str(error).startswith("bag 7, task 3: ")
    assert words in str(error)


def test_a_result_that_is_a_link_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.executor.call_files._PATIENCE", 0.0)
    (tmp_path / "other").write_bytes(pickle.dumps(1))
    (tmp_path / "3.1.result").symlink_to(tmp_path / "other")
    assert "cannot be read" in str(outcome_of(7, event(VALUE.upper() + b"3.1.result"), tmp_path).error)
    assert "cannot be read" in str(outcome_of(7, event(VALUE.upper() + b"gone"), tmp_path).error)


def test_names_are_those_of_the_function() -> None:
    assert name_of(functools.partial(functools.partial(pow, 2), 3)) == "builtins.pow()"
    assert name_of(test_names_are_those_of_the_function).endswith(".test_names_are_those_of_the_function()")
