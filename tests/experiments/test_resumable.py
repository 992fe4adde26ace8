"""The folder of an experiment that is stopped and resumed."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from adaptor_experiments import resumable
from adaptor_simulation.files import ReplayError
from tests.living import is_gone, until


class Settings(msgspec.Struct, frozen=True):
    seed: int = 1


class Piece(msgspec.Struct, frozen=True):
    number: int

    @property
    def name(self) -> str:
        return f"piece-{self.number}"


PIECES = [Piece(number) for number in range(5)]


def squares(piece: Piece) -> list[float]:
    return [piece.number, piece.number**2]


def fails_at_three(piece: Piece) -> list[float]:
    if piece.number == 3:
        raise ReplayError("stopped")
    return squares(piece)


def is_killed_at_three(piece: Piece) -> list[float]:
    if piece.number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return squares(piece)


def resumed(folder, run=squares, pieces=PIECES, seed=1, processes=1, told=None) -> list[float]:
    done = (told if told is not None else []).append
    return resumable.resumed(run, pieces, float, folder, Settings(seed=seed), processes, done)


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_finished_is_not_run_again(tmp_path: Path, processes: int) -> None:
    folder, told = tmp_path / "new" / "out", []
    with pytest.raises(ReplayError, match="stopped"):
        resumed(folder, fails_at_three)
    assert sorted(path.stem for path in (folder / "samples").iterdir()) == ["piece-0", "piece-1", "piece-2"]
    (folder / "samples" / ".piece-3.msgpack.77").write_text("half a file of a process that was killed")
    (folder / "samples" / "piece-0.msgpack").write_bytes(msgspec.msgpack.encode([7.0]))
    assert resumed(folder, processes=processes, told=told) == [7, 1, 1, 2, 4, 3, 9, 4, 16]
    assert told == [3, 1, 1]


@pytest.mark.parametrize("run", [resumable.in_processes, resumable.all_rows])
def test_a_process_that_is_killed_is_not_waited_for(run) -> None:
    with pytest.raises(ReplayError, match=r"^a process was killed"):
        list(run(is_killed_at_three, PIECES, 2))


_ENDLESS = """
import os, sys, time
from pathlib import Path
from adaptor_experiments import resumable

def endless(piece):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(3600)

if __name__ == "__main__":
    list(resumable.in_processes(endless, [1, 2], 2))
"""


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    (tmp_path / "endless.py").write_text(_ENDLESS)
    with subprocess.Popen([sys.executable, tmp_path / "endless.py", tmp_path / "pids"]) as parent:
        try:
            until(lambda: len([*(tmp_path / "pids").iterdir()]) == 2, "both run")
        finally:
            parent.kill()
    for path in (tmp_path / "pids").iterdir():
        assert is_gone(int(path.name))


def test_what_is_no_number_is_kept(tmp_path: Path) -> None:
    for _ in range(2):
        found = resumed(tmp_path, lambda _: [math.nan, math.inf], PIECES[:1])
        assert str(found) == "[nan, inf]"


def test_results_of_other_settings_stay_as_they_are(tmp_path: Path) -> None:
    resumed(tmp_path, lambda _: [1.0], PIECES[:1])
    with pytest.raises(ReplayError, match=rf"^{tmp_path} holds results of other settings \(settings.json\)"):
        resumed(tmp_path, seed=2)
    assert resumed(tmp_path, pieces=PIECES[:1]) == [1]


@pytest.mark.parametrize("content", [b"", b"\x91", b'["x"]', b"\xff"])
def test_a_damaged_file_is_named_with_the_way_out(tmp_path: Path, content: bytes) -> None:
    resumed(tmp_path)
    path = tmp_path / "samples" / "piece-0.msgpack"
    path.write_bytes(content)
    with pytest.raises(ReplayError, match=rf"^{path}: .*remove it"):
        resumed(tmp_path)


def test_a_folder_or_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReplayError, match=f"^{tmp_path / 'file'}: "):
        resumed(tmp_path / "file")
    (tmp_path / "samples").write_text("in the way")
    with pytest.raises(ReplayError, match=rf"^{tmp_path}: File exists"):
        resumed(tmp_path)
