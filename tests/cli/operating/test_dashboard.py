"""`dashboard`: what it prints, where it listens, and that it ends cleanly."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.invoking import Cli, Serve
from tests.dashboard.told import answers
from tests.living import PATIENCE


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command at work, with the lines that it has printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "adaptor.cli", "dashboard", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or "http://" not in lines[-1]:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            lines.append(line.strip())
        yield process, lines
    finally:
        process.kill()
        process.communicate()


class SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self._path)


def get(connection: http.client.HTTPConnection, path: str, token: str = "") -> tuple[int, bytes]:
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_a_socket_that_the_printed_line_leads_to(serve: Serve, state: Path) -> None:
    serve(answers())
    path = state / "dashboard.sock"
    with serving() as (process, lines):
        assert lines[0] == f"listening on {path}"
        forward = re.search(r"^ssh -N -L 8765:(\S+) \S+@\S+$", lines[-2])
        assert forward
        assert forward[1] == str(path)
        token = lines[-1].partition("?token=")[2]
        assert (state / "dashboard-token").read_text() == token
        assert path.stat().st_mode & 0o777 == 0o600
        assert get(SocketConnection(path), "/page.json")[0] == 401
        status, body = get(SocketConnection(path), "/page.json", token)
        assert status == 200
        assert json.loads(body)["bags"][0]["bag"]["name"] == "render"
        assert b'adaptor_tasks{state="done"} 4.0' in get(SocketConnection(path), "/metrics", token)[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert token not in process.stderr.read()
    assert not path.exists()


def test_a_port_and_a_path_of_a_proxy(serve: Serve) -> None:
    serve(answers())
    with serving("--port", "0", "--base-url", "/node/login1/8765/", "--host", "portal.example") as (_, lines):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/node/login1/8765/\?token=(\S+)", lines[-1])
        assert found
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        assert get(connection, "/node/login1/8765/page.json", found[2])[0] == 200
        connection.request("GET", "/", headers={"Host": "portal.example"})
        assert connection.getresponse().status == 401


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port", "0", "--socket", "/tmp/x"), "exclude each other"),
        (("--port", "0", "--no-token"), "every user of this machine reaches a port"),
        (("--port", "0", "--host", "*"), "is for sockets"),
        (("--socket", "/tmp/x.sock"), "is open to other users"),
    ],
)
def test_what_would_be_open_to_others_is_refused(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    outcome = cli("dashboard", *arguments)
    assert outcome.code != 0
    assert words in outcome.err
