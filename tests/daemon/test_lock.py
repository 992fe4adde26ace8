"""One daemon per state directory: who it is can be asked without getting in its way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from adaptor.daemon import lock
from adaptor.daemon.lock import LockHeldError, holder_of, take_lock
from adaptor.errors import AdaptorError

HOLD = "import sys; from pathlib import Path; from adaptor.daemon.lock import take_lock; "
HOLD += "lock = take_lock(Path(sys.argv[1])); print('held', flush=True); input()"


def test_the_lock_names_its_holder_and_asking_does_not_take_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        holder = holder_of(tmp_path)
        assert holder is not None
        assert holder.local
        found = holder.process()
        assert found is not None
        assert found.pid == other.pid
        with pytest.raises(AdaptorError, match=rf"process {other.pid} on .*`adaptor daemon stop` ends it"):
            take_lock(tmp_path)
        other.communicate(b"\n")
    assert holder.process() is None
    assert holder_of(tmp_path) is None


def test_nobody_holds_a_lock_that_was_left_behind(tmp_path: Path) -> None:
    assert holder_of(tmp_path) is None
    take_lock(tmp_path).close()
    assert (tmp_path / lock.LOCK).exists()
    assert holder_of(tmp_path) is None


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / lock.LOCK).symlink_to(victim)
    with pytest.raises(AdaptorError, match="cannot be opened"):
        take_lock(tmp_path)
    assert victim.read_text() == "precious"


ELSEWHERE = json.dumps({"host": "login1", "boot": "b", "pid": 4711, "ticks": 1})
"""A daemon on another machine, whose lock of the kernel does not reach this one."""


class Waiting:
    """A clock that only sleeping moves; `beating`: another daemon shows a heartbeat meanwhile."""

    def __init__(self, path: Path, *, beating: bool) -> None:
        self._path, self._beating = path, beating
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self._beating and self.now > lock.HEARTBEAT:
            os.utime(self._path, (self.now, self.now))


def test_a_daemon_on_another_machine_is_known_by_its_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / lock.LOCK
    path.write_text(ELSEWHERE)
    monkeypatch.setattr(lock, "time", Waiting(path, beating=True))
    with pytest.raises(LockHeldError, match="process 4711 on login1"):
        take_lock(tmp_path)
    assert path.read_text() == ELSEWHERE


def test_one_without_a_heartbeat_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / lock.LOCK).write_text(ELSEWHERE)
    waiting = Waiting(tmp_path / lock.LOCK, beating=False)
    with monkeypatch.context() as patch:
        patch.setattr(lock, "time", waiting)
        take_lock(tmp_path).close()
    assert waiting.now == lock.SILENCE
    assert (tmp_path / lock.LOCK).read_bytes() == b"", "the next one need not wait"


def test_commands_are_told_of_one_on_another_machine(tmp_path: Path) -> None:
    path = tmp_path / lock.LOCK
    path.write_text(ELSEWHERE)
    assert str(holder_of(tmp_path)) == "process 4711 on login1"
    long_ago = path.stat().st_mtime - 2 * lock.SILENCE
    os.utime(path, (long_ago, long_ago))
    assert holder_of(tmp_path) is None


def test_a_lock_that_is_not_its_own_any_more(tmp_path: Path) -> None:
    here, away, other = tmp_path / "st", tmp_path / "away", tmp_path / "backup"
    for folder in (here, other):
        folder.mkdir()
    (other / lock.LOCK).touch()
    with take_lock(here) as held:
        assert held.displaced() == ""
        here.rename(away)
        assert "removed" in held.displaced()
        other.rename(here)
        assert "replaced" in held.displaced()
        here.rename(other)
        away.rename(here)
        assert held.displaced() == ""
        (here / lock.LOCK).unlink()
        assert "removed" in held.displaced()


def test_a_look_that_fails_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(_path: Path) -> os.stat_result:
        raise OSError(116, "Stale file handle")

    with take_lock(tmp_path) as held:
        monkeypatch.setattr(Path, "lstat", stale)
        with pytest.raises(OSError, match="Stale"):
            held.displaced()


def test_where_no_thread_can_be_had_the_lock_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as refusing:
        refusing.setattr(threading.Thread, "start", none)
        with pytest.raises(AdaptorError, match="ulimit -u"):
            take_lock(tmp_path)
    take_lock(tmp_path).close()


def test_a_heartbeat_changes_the_file_and_one_that_finds_another_daemon_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    path = tmp_path / lock.LOCK
    held = take_lock(tmp_path)
    os.utime(path, (1.0, 1.0))  # by hand
    held.beat()
    assert path.stat().st_mtime > 1.0
    assert sent == []
    path.write_text(ELSEWHERE)
    os.utime(path, (2.0, 2.0))
    held.beat()
    assert sent == [(os.getpid(), signal.SIGTERM)]
    held.close()
    assert path.read_text() == ELSEWHERE


def test_the_lock_knows_when_the_daemon_before_it_last_lived(tmp_path: Path) -> None:
    with take_lock(tmp_path) as first:
        assert first.before is None, "there was none"
    os.utime(tmp_path / "daemon.lock", (1000.0, 1000.0))
    with take_lock(tmp_path) as second:
        assert second.before == 1000.0
