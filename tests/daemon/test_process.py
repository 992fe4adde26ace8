"""A daemon that cannot start says why, even where nothing can be written."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from adaptor.config.schema import BUILT_IN
from adaptor.daemon import __main__ as starting
from adaptor.daemon import process
from adaptor.daemon.configured import Configured
from adaptor.daemon.lock import LockHeldError, take_lock
from adaptor.daemon.server import PortLimits
from adaptor.errors import AdaptorError
from adaptor.protocol.state_directory import private_directory

START = """
import resource, sys
from pathlib import Path
from adaptor.daemon import process

resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
process.start(Path(sys.argv[1]), sys.argv[2])
"""


def test_on_a_full_disk_a_start_says_why(tmp_path: Path) -> None:
    """A limit of file sizes stands for the disk: not a byte can be written, and no reason kept in a file."""
    config = tmp_path / "site.yaml"
    config.write_text("sites: {here: {backend: local, processors: 1}}\n")
    private_directory(tmp_path / "state")
    words = [sys.executable, "-c", START, str(tmp_path / "state"), str(config)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AdaptorError" in done.stderr
    assert "cannot be locked and written: File too large" in done.stderr


def test_a_full_disk_is_told_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> int:
        raise OSError(28, "No space left on device", "/st/keys.json")

    ready, word = os.pipe()
    monkeypatch.setattr(starting, "run", full)
    monkeypatch.setattr(sys, "argv", ["adaptor.daemon", "--state", "/st", "--ready-fd", str(word)])
    assert starting.main() == 1
    with os.fdopen(ready, "rb") as pipe:
        assert pipe.read() == b"/st/keys.json: No space left on device"


def test_a_start_beside_another_daemon_says_that_its_lock_is_held(tmp_path: Path) -> None:
    private_directory(tmp_path)
    with take_lock(tmp_path), pytest.raises(LockHeldError):
        process.start(tmp_path, None)


def test_lines_that_the_disk_does_not_take_are_counted_and_no_traceback_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(_handler: object) -> None:
        raise OSError(28, "No space left on device")

    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        process._log_to(tmp_path / "daemon.log")
        log = logging.getLogger("adaptor")
        with monkeypatch.context() as disk:
            disk.setattr(logging.StreamHandler, "flush", full)
            disk.setattr(root.handlers[0].stream, "write", lambda _text: full(None))  # type: ignore[attr-defined]
            for _ in range(3):
                log.warning("is lost")
        log.warning("is there")
        log.warning("is there, too")
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers, root.level = before, level
    lines = [line.split(" ", 2)[2] for line in (tmp_path / "daemon.log").read_text().splitlines()]
    assert lines == [
        "WARNING 3 lines could not be written into this log: No space left on device",
        "WARNING is there",
        "WARNING is there, too",
    ]
    assert capfd.readouterr().err == ""


def test_the_log_has_why_the_daemon_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    for error, told in (
        (AdaptorError("no port"), "stopping: no port"),
        (RuntimeError("odd"), "RuntimeError: odd"),
    ):

        def ends(*_arguments: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(process, "_serve_all", ends)
        try:
            with pytest.raises(type(error)):
                process.run(tmp_path / "state", None)
        finally:
            for handler in root.handlers:
                handler.close()
            root.handlers, root.level = before, level
        assert told in (tmp_path / "state" / "daemon.log").read_text()


def test_the_log_rotates(tmp_path: Path) -> None:
    """A daemon lives for months: its log has 5 MB, and two older ones are kept, for its user's eyes only."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        process._log_to(tmp_path / "daemon.log")
        for _ in range(1800):
            logging.getLogger("adaptor").info("x" * 10_000)
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers, root.level = before, level
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["daemon.log", "daemon.log.1", "daemon.log.2"]
    assert all(path.stat().st_size <= 5_000_000 for path in files)
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


class Played:
    """A service that reloads once for each configuration in `wishes`, and refuses those in `unusable`."""

    begun: list[tuple[str, str]]
    wishes: list[Configured]
    unusable: frozenset[str]
    breaks = ""

    def __init__(
        self,
        _directory: Path,
        given: Configured,
        _rooms: PortLimits,
        _started: float,
        problem: str,
        _displaced: object,
        _away: str,
    ) -> None:
        if given.digest in self.unusable:
            raise AdaptorError("no port can be bound")
        self.begun.append((given.digest, problem))
        self.present = given
        self.next: Configured | None = None

    async def run(self, _until_idle: bool, _on_ready: object) -> None:
        if self.present.digest == self.breaks:
            raise AdaptorError("the journal is broken")
        self.next = self.wishes.pop(0) if self.wishes else None


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> type[Played]:
    class Once(Played):
        begun: ClassVar[list[tuple[str, str]]] = []
        unusable = frozenset({"bad"})

    monkeypatch.setattr("adaptor.daemon.service.Service", Once)
    return Once


def given(digest: str) -> Configured:
    return Configured(None, None, BUILT_IN, digest)


def test_a_configuration_that_cannot_be_used_after_all_gives_way(
    tmp_path: Path, played: type[Played]
) -> None:
    played.wishes = [given("good"), given("bad"), given("better")]
    process._serve_all(tmp_path, given("first"), 1000, False, None)
    assert played.begun == [
        ("first", ""), ("good", ""), ("good", "no port can be bound"), ("better", ""),
    ]  # fmt: skip


def test_a_failure_of_a_running_service_is_none_of_its_configuration(
    tmp_path: Path, played: type[Played]
) -> None:
    played.wishes, played.breaks = [given("good")], "good"
    with pytest.raises(AdaptorError, match="the journal is broken"):
        process._serve_all(tmp_path, given("first"), 1000, False, None)
    with pytest.raises(AdaptorError, match="no port"):
        process._serve_all(tmp_path, given("bad"), 1000, False, None)
