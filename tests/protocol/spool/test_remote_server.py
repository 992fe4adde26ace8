"""A mail spool behind a process: it ends, hangs, speaks nonsense, is of another version."""

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
from adaptor.protocol.spool import frames
from adaptor.protocol.spool.exchange import Exchange, SpoolError
from adaptor.protocol.spool.remote import RemoteSpool
from adaptor.protocol.spool.remote_server import Failed, Greeting
from tests.protocol.spool.spools import Talks, put_worker_file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool" / "spool"


@pytest.fixture
def talks(folder: Path) -> Talks:
    return Talks(folder)


@pytest.fixture
def spool(talks: Talks) -> Iterator[RemoteSpool]:
    spool = RemoteSpool(talks.start, timeout=20)
    yield spool
    spool.close()


def test_a_process_that_was_killed_is_replaced(folder: Path, talks: Talks, spool: RemoteSpool) -> None:
    spool.run(Exchange())
    put_worker_file(folder, b"data")
    talks.started[0].process.kill()
    talks.started[0].process.wait()
    with pytest.raises(SpoolError, match="does not answer"):
        spool.run(Exchange())
    assert len(spool.run(Exchange()).files) == 1
    assert len(talks.started) == 2


def test_a_process_that_hangs_is_given_up(talks: Talks) -> None:
    spool = RemoteSpool(talks.start, timeout=20)
    spool.run(Exchange())
    hung = talks.started[0].process
    hung.send_signal(signal.SIGSTOP)
    spool._timeout = 0.3
    with pytest.raises(SpoolError, match="no answer in time"):
        spool.run(Exchange())
    assert hung.poll() is not None
    spool._timeout = 20
    spool.run(Exchange())
    spool.close()


def test_its_last_words_are_told(spool: RemoteSpool, talks: Talks) -> None:
    talks.words = [sys.executable, "-c", "import sys; sys.exit('no such module')"]
    with pytest.raises(SpoolError, match=r"it has ended \(no such module\)"):
        spool.run(Exchange())


def test_output_without_frames_is_reported(spool: RemoteSpool, talks: Talks) -> None:
    talks.words = [sys.executable, "-c", "print('Welcome to the cluster! ' * 10)"]
    with pytest.raises(SpoolError, match="not a frame"):
        spool.run(Exchange())


def test_a_program_that_is_not_there_is_told(spool: RemoteSpool, talks: Talks) -> None:
    talks.words = ["/no/such/python"]
    with pytest.raises(SpoolError, match="cannot be started"):
        spool.run(Exchange())


def test_another_version_is_told(spool: RemoteSpool, talks: Talks) -> None:
    frame = msgspec.msgpack.encode(Greeting("0.0.1", "/x"))
    text = len(frame).to_bytes(4, "big") + frame
    talks.words = [sys.executable, "-c", f"import sys; sys.stdout.buffer.write({text!r}); sys.stdin.read()"]
    with pytest.raises(SpoolError, match=rf"0\.0\.1 is installed there and {re.escape(__version__)} here"):
        spool.run(Exchange())


def test_a_folder_that_is_open_to_others_is_told(folder: Path, spool: RemoteSpool) -> None:
    folder.parent.mkdir(mode=0o755)
    folder.parent.chmod(0o755)
    with pytest.raises(SpoolError, match="open to other users"):
        spool.run(Exchange())


def test_it_finds_the_home_directory_and_ends_with_its_input(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "adaptor.protocol.spool.remote_server", "~/spools/spool"],
        env={**os.environ, "HOME": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    data = frames.receive(process.stdout.fileno(), time.monotonic() + 20)
    assert data is not None
    assert msgspec.msgpack.decode(data, type=Greeting).folder == str(tmp_path / "spools" / "spool")
    frames.send(process.stdin.fileno(), b"\xc1 no exchange", time.monotonic() + 20)
    answer = frames.receive(process.stdout.fileno(), time.monotonic() + 20)
    assert answer is not None
    assert "cannot decode" in msgspec.msgpack.decode(answer, type=Failed).message
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()


def test_it_is_told_how_to_be_called() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "adaptor.protocol.spool.remote_server"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "FOLDER" in done.stderr


def test_large_frames_pass_although_pipes_are_small() -> None:
    reading, writing = os.pipe()
    data = os.urandom(3_000_000)
    sender = threading.Thread(target=frames.send, args=(writing, data), daemon=True)
    sender.start()
    assert frames.receive(reading, time.monotonic() + 20) == data
    sender.join()
    os.close(writing)
    assert frames.receive(reading) is None
    os.close(reading)


@pytest.mark.parametrize("text", [b"\0\0", b"\0\0\0\5ab"])
def test_a_frame_that_ends_in_the_middle(text: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, text)
    os.close(writing)
    with pytest.raises(frames.FrameError, match="middle"):
        frames.receive(reading, time.monotonic() + 20)
    os.close(reading)
