"""One message to several URLs: each gets it once, and what is said of those that fail holds no secret."""

from __future__ import annotations

import time
from pathlib import Path

import apprise
import msgspec
import pytest

from adaptor.notify.__main__ import Message, main
from tests.daemon.upkeep.web import SECRET


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each pause, which takes no time."""
    passed: list[float] = []
    monkeypatch.setattr(time, "sleep", passed.append)
    return passed


class Server:
    """Takes a message after it has refused so many."""

    def __init__(self, refuses: int) -> None:
        self.refuses, self.got = refuses, list[tuple[str, str]]()

    def notify(self, body: str, title: str) -> bool:
        self.refuses -= 1
        if self.refuses < 0:
            self.got.append((title, body))
        return self.refuses < 0


def sent(folder: Path, *urls: str) -> int:
    file = folder / "message"
    file.write_bytes(msgspec.json.encode(Message([*urls], "a title", "a body")))
    code = main([str(file)])
    assert not file.exists()
    return code


def test_those_that_refuse_are_tried_again_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    servers = {"x://at once": Server(0), "x://later": Server(2)}
    monkeypatch.setattr(apprise.Apprise, "instantiate", lambda url, **_: servers[url])
    assert sent(tmp_path, *servers) == 0
    assert [server.got for server in servers.values()] == [[("a title", "a body")]] * 2
    assert pauses == [1.0, 4.0]


def test_what_fails_three_times_is_named_without_what_is_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    never = Server(9)
    found = {"x://at once": Server(0), f"y://{SECRET}": never, SECRET: None}
    monkeypatch.setattr(apprise.Apprise, "instantiate", lambda url, **_: found[url])
    assert sent(tmp_path, *found) == 1
    said = capsys.readouterr().out
    assert said == "not sent: URL 3, which apprise does not understand, URL 2 (y://…)\n"
    assert never.refuses == 6
    assert len(pauses) == 2
