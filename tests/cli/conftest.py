"""A private state directory, no batch scheduler, a fake daemon on demand, the command line as a function."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from adaptor.cli.main import program
from adaptor.client import asking
from backends import registry
from tests.cli.fake_control import DEADLINE, Answers, FakeControl
from tests.cli.invoking import Cli, Outcome, Serve


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "state"
    directory.mkdir(mode=0o700)
    monkeypatch.setenv("ADAPTOR_DIR", str(directory))
    monkeypatch.delenv("ADAPTOR_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ADAPTOR_TRACEBACK", "1")
    monkeypatch.setattr(registry, "answering", str)
    monkeypatch.setattr(asking, "HANDSHAKE_TIMEOUT", DEADLINE)
    return directory


@pytest.fixture
def serve(state: Path) -> Iterator[Serve]:
    running: list[FakeControl] = []

    def start(answers: Answers) -> FakeControl:
        running.append(FakeControl(state, answers))
        return running[-1]

    yield start
    for server in running:
        server.close()


@pytest.fixture
def cli() -> Cli:
    def run(*arguments: str, input: bytes | None = None) -> Outcome:
        result = CliRunner().invoke(program, arguments, input=input)
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run
