"""The folder of an experiment that is stopped and resumed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from adaptor_experiments import resumable
from adaptor_simulation.files import ReplayError


class Settings(msgspec.Struct, frozen=True):
    seed: int = 1


class Piece(msgspec.Struct, frozen=True):
    number: int

    @property
    def name(self) -> str:
        return f"piece-{self.number}"


def open_store(folder: Path, seed: int = 1) -> resumable.Store[int]:
    return resumable.Store(folder, Settings(seed=seed), int)


PIECES = [Piece(number) for number in range(5)]


def squares(piece: Piece) -> list[int]:
    return [piece.number, piece.number**2]


def fails_at_three(piece: Piece) -> list[int]:
    if piece.number == 3:
        raise ReplayError("stopped")
    return squares(piece)


def is_killed_at_three(piece: Piece) -> list[int]:
    if piece.number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return squares(piece)


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_finished_is_not_run_again(tmp_path: Path, processes: int) -> None:
    store = open_store(tmp_path / "new" / "out")
    with pytest.raises(ReplayError, match="stopped"):
        resumable.run_missing(fails_at_three, PIECES, store, 1, lambda _: None)
    assert [store.has(piece) for piece in PIECES] == [True, True, True, False, False]
    store.add(PIECES[0], [7])
    again, told = open_store(store.folder), []
    resumable.run_missing(squares, PIECES, again, processes, told.append)
    assert told == [3, 1, 1]
    assert again.read(PIECES) == [7, 1, 1, 2, 4, 3, 9, 4, 16]
    assert sorted(path.name for path in (store.folder / "samples").iterdir()) == [
        f"{piece.name}.json" for piece in PIECES
    ], "nothing half written stays behind"


@pytest.mark.parametrize("ordered", [False, True])
def test_a_process_that_is_killed_is_not_waited_for(ordered: bool) -> None:
    with pytest.raises(ReplayError, match=r"^a process was killed"):
        list(resumable.in_processes(is_killed_at_three, PIECES, 2, ordered=ordered))


def test_results_of_other_settings_stay_as_they_are(tmp_path: Path) -> None:
    open_store(tmp_path).add(PIECES[0], [1])
    with pytest.raises(ReplayError, match=rf"^{tmp_path} holds results of other settings \(settings.json\)"):
        open_store(tmp_path, seed=2)
    assert open_store(tmp_path).read(PIECES[:1]) == [1]


@pytest.mark.parametrize("content", [b"", b"[1,", b'["x"]', b"\xff", None])
def test_a_damaged_or_missing_file_is_named_with_the_way_out(tmp_path: Path, content: bytes | None) -> None:
    store = open_store(tmp_path)
    path = tmp_path / "samples" / "piece-0.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReplayError, match=rf"^{path}: .*remove it"):
        store.read(PIECES[:1])


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReplayError, match=f"^{tmp_path / 'file'}: "):
        open_store(tmp_path / "file")


def test_a_result_that_cannot_be_written_leaves_no_part(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    (tmp_path / "samples" / "piece-0.json").mkdir()
    with pytest.raises(ReplayError, match=r"piece-0.json: Is a directory"):
        store.add(PIECES[0], [1])
    assert [path.name for path in (tmp_path / "samples").iterdir()] == ["piece-0.json"]
