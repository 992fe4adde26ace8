"""Files behind a process: it ends, hangs, sends no frames, is of another version."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor import __version__
from adaptor.processes.talk import Talk
from adaptor.protocol.files import remote
from adaptor.protocol.files.local import FilesDone, FilesError, FileWork
from adaptor.protocol.files.remote import Failed, FilesReply, Greeting, RemoteFiles
from tests.living import PATIENCE
from tests.protocol.spools import Talks

WORK = FileWork(names=[b"/"])


@pytest.fixture
def talks() -> Talks:
    return Talks()


@pytest.fixture
def files(talks: Talks) -> Iterator[RemoteFiles]:
    files = RemoteFiles(talks.start, timeout=PATIENCE)
    yield files
    files.close()


def test_a_process_that_was_killed_is_replaced(talks: Talks, files: RemoteFiles) -> None:
    files.run(WORK)
    talks.started[0].process.kill()
    talks.started[0].process.wait()
    assert files.run(WORK).names
    assert len(talks.started) == 2


def test_a_process_that_dies_at_work_leaves_it_open(talks: Talks, files: RemoteFiles) -> None:
    files.run(WORK)
    ended = talks.started[0].process
    ended.kill()
    ended.wait()
    ended.poll = lambda: None  # type: ignore[method-assign]  # as if it lived when the work began
    with pytest.raises(FilesError, match="does not answer"):
        files.run(WORK)
    assert files.run(WORK).names


def test_a_process_that_hangs_is_given_up(talks: Talks, files: RemoteFiles) -> None:
    files.run(WORK)
    hung = talks.started[0].process
    hung.send_signal(signal.SIGSTOP)
    files._timeout = 0.3
    with pytest.raises(FilesError, match="no answer in time"):
        files.run(WORK)
    assert hung.poll() is not None
    files._timeout = PATIENCE
    assert files.run(WORK).names


def test_closing_ends_work_that_hangs(
    talks: Talks, files: RemoteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.run(WORK)
    talks.started[0].process.send_signal(signal.SIGSTOP)
    caught: list[FilesError] = []
    receive, waits = files._receive, threading.Event()

    def watched(talk: Talk, deadline: float) -> FilesReply:
        waits.set()
        return receive(talk, deadline)

    monkeypatch.setattr(files, "_receive", watched)

    def work() -> None:
        try:
            files.run(WORK)
        except FilesError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    waits.wait(PATIENCE)
    files.close()
    thread.join(PATIENCE)
    assert caught


def test_its_last_words_are_told(files: RemoteFiles, talks: Talks) -> None:
    talks.words = [sys.executable, "-c", "import sys; sys.exit('no such module')"]
    with pytest.raises(FilesError, match=r"it has ended \(no such module\)"):
        files.run(WORK)


def test_output_without_frames_is_reported(files: RemoteFiles, talks: Talks) -> None:
    talks.words = [sys.executable, "-c", "print('Welcome to the cluster! ' * 10)"]
    with pytest.raises(FilesError, match="not a frame"):
        files.run(WORK)


def test_a_program_that_is_not_there_is_told(files: RemoteFiles, talks: Talks) -> None:
    talks.words = ["/no/such/python"]
    with pytest.raises(FilesError, match="cannot be started"):
        files.run(WORK)


def test_another_version_is_told(files: RemoteFiles, talks: Talks) -> None:
    frame = msgspec.msgpack.encode(Greeting("0.0.1"))
    text = len(frame).to_bytes(4, "big") + frame
    talks.words = [sys.executable, "-c", f"import sys; sys.stdout.buffer.write({text!r}); sys.stdin.read()"]
    with pytest.raises(FilesError, match=rf"0\.0\.1 is installed there and {re.escape(__version__)} here"):
        files.run(WORK)


def test_a_folder_that_is_open_to_others_is_told(tmp_path: Path, files: RemoteFiles) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(FilesError, match="open to other users"):
        files.run(FileWork(make=[bytes(tmp_path)]))


def test_it_finds_the_home_directory_and_ends_with_its_input(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "adaptor.protocol.files.remote"],
        env={**os.environ, "HOME": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    pipes = process.stdin.fileno(), process.stdout.fileno()

    def asked(data: bytes) -> bytes:
        remote.send(pipes[0], data, time.monotonic() + PATIENCE)
        return remote.receive(pipes[1], time.monotonic() + PATIENCE) or b""

    assert remote.receive(pipes[1], time.monotonic() + PATIENCE)
    work = msgspec.msgpack.encode(FileWork(make=[b"one/below", b"~/two"]))
    made = msgspec.msgpack.decode(asked(work), type=FilesDone).made
    assert made == [bytes(tmp_path / "one" / "below"), bytes(tmp_path / "two")]
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("one", "two")] == [0o700, 0o700]
    assert "cannot decode" in msgspec.msgpack.decode(asked(b"\xc1 no work"), type=Failed).message
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    process.stdout.close()


def test_large_frames_pass_although_pipes_are_small() -> None:
    reading, writing = os.pipe()
    data = os.urandom(3_000_000)
    sender = threading.Thread(target=remote.send, args=(writing, data), daemon=True)
    sender.start()
    assert remote.receive(reading, time.monotonic() + PATIENCE) == data
    sender.join()
    os.close(writing)
    assert remote.receive(reading) is None
    os.close(reading)


@pytest.mark.parametrize("text", [b"\0\0", b"\0\0\0\5ab"])
def test_a_frame_that_ends_in_the_middle(text: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, text)
    os.close(writing)
    with pytest.raises(remote.FrameError, match="middle"):
        remote.receive(reading, time.monotonic() + PATIENCE)
    os.close(reading)
