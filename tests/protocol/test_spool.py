"""What every mail spool does, in a folder here and behind a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.protocol.files.local import LOCAL_FILES, FilesDone, FilesError, NewFile
from adaptor.protocol.maildir import (
    LARGEST,
    UNREAD,
    Outgoing,
    Seal,
    SpoolConnection,
    file_name,
    for_worker,
    from_workers,
    opened,
    path_of,
)
from adaptor.protocol.spool import Spool
from tests.protocol.spools import CONNECTION, distant, put_worker_file

RUN = "89abcdef"
SEAL = Seal("key")
REMARKS: list[str] = []


@pytest.fixture(scope="module", params=["here", "distant"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Spool]]:
    folder = tmp_path_factory.mktemp("spools") / "spool" / "spool"
    files = LOCAL_FILES if request.param == "here" else distant()
    spool = Spool(folder, files, REMARKS.append)
    spool.locate()
    yield folder, spool
    files.close()


@pytest.fixture
def folder(place: tuple[Path, Spool]) -> Iterator[Path]:
    """The spool's folder; empty again afterwards."""
    folder, spool = place
    REMARKS.clear()
    yield folder
    for path in from_workers(folder).iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
    spool.run(pilots=[], collect=False)


@pytest.fixture
def spool(place: tuple[Path, Spool]) -> Spool:
    return place[1]


def test_the_spool_is_private(folder: Path, spool: Spool) -> None:
    assert spool.locate() == folder
    for each in (folder.parent, folder, from_workers(folder), folder / "out"):
        assert each.stat().st_mode & 0o777 == 0o700


def words(found: tuple[FilesDone, bool]) -> list[bytes]:
    return [end.data for end in found[0].ends]


def paths(folder: Path, *names: str) -> list[bytes]:
    return [os.fsencode(from_workers(folder) / name) for name in names]


def posts(folder: Path, count: int) -> tuple[Path, list[NewFile]]:
    """The next files for a worker, of one byte each."""
    box = for_worker(folder, CONNECTION.name)
    outgoing = Outgoing(folder, box, RUN, SEAL)
    files = []
    for _ in range(count):
        outgoing.add(b"x")
        file = outgoing.next_file("7-n1-1")
        assert file is not None
        files.append(file)
        outgoing.done()
    return box, files


def test_worker_files_come_by_number_until_they_are_done(folder: Path, spool: Spool) -> None:
    other = SpoolConnection(8, "89abcdef", 2)
    names = [
        put_worker_file(folder, b"2", 2),
        put_worker_file(folder, b"1", 1),
        put_worker_file(folder, b"o", 1, other),
    ]
    found, _ = spool.run()
    assert [end.data for end in found.ends] == [b"1", b"o", b"2"]
    assert sorted(path_of(end).name for end in found.ends) == sorted(names)
    assert words(spool.run(remove=paths(folder, names[0]))) == [b"1", b"o"]
    assert words(spool.run(remove=paths(folder, *names, "7-0123abcd-1.00000099"))) == []


def test_posts_reach_boxes_and_are_whole_and_private(folder: Path, spool: Spool) -> None:
    box, files = posts(folder, 2)
    box.mkdir()
    done, _ = spool.run(write=files)
    assert done.homeless == []
    found = sorted(box.iterdir())
    assert [path.read_bytes() for path in found] == [file.data for file in files]
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}


def test_a_box_that_is_gone_is_told(folder: Path, spool: Spool) -> None:
    _, files = posts(folder, 1)
    done, _ = spool.run(write=files)
    assert done.homeless == [files[0].path]
    assert list((folder / "out").iterdir()) == []


def test_a_box_in_which_much_lies_unread_is_told(folder: Path, spool: Spool) -> None:
    box, files = posts(folder, UNREAD + 1)
    box.mkdir()
    assert spool.run(write=files[:UNREAD])[0].held == []
    assert spool.run(write=files[UNREAD:])[0].held == [files[-1].path]
    assert len(list(box.iterdir())) == UNREAD


def test_an_exchange_that_does_not_collect_brings_nothing(folder: Path, spool: Spool) -> None:
    put_worker_file(folder, b"data")
    assert words(spool.run(collect=False)) == []
    assert words(spool.run()) == [b"data"]


def test_what_ended_pilots_left_is_swept_away_and_worker_files_stay(folder: Path, spool: Spool) -> None:
    gone = SpoolConnection(8, "0123abcd", 1)
    for connection in (CONNECTION, gone):
        for_worker(folder, connection.name).mkdir()
        (for_worker(folder, connection.name) / file_name(RUN, 1)).write_bytes(b"x")
        (from_workers(folder) / f".{file_name(connection.name, 1)}.42.7").write_bytes(b"half")
    put_worker_file(folder, b"last words", connection=gone)
    (folder / "out" / "somebody's").mkdir()
    spool.run(pilots=[7], collect=False)
    assert sorted(path.name for path in (folder / "out").iterdir()) == [CONNECTION.name, "somebody's"]
    assert {path.name for path in from_workers(folder).iterdir()} == {
        f".{file_name(CONNECTION.name, 1)}.42.7",
        file_name(gone.name, 1),
    }
    (folder / "out" / "somebody's").rmdir()


def test_strange_files_are_remarked_on_once_and_left_alone(folder: Path, spool: Spool) -> None:
    (from_workers(folder) / "notes \udcff\n.txt").write_bytes(b"mine")
    (from_workers(folder) / "dir").mkdir()
    put_worker_file(folder, b"data")
    for _ in range(2):
        assert words(spool.run()) == [b"data"]
        assert len(REMARKS) == 2
    assert "notes" in "".join(REMARKS)
    assert (from_workers(folder) / "notes \udcff\n.txt").exists()


def test_what_bears_a_worker_files_name_and_is_none_is_removed_and_told(folder: Path, spool: Spool) -> None:
    huge = from_workers(folder) / file_name(CONNECTION.name, 1)
    with huge.open("wb") as file:
        file.truncate(LARGEST + 1)
    (from_workers(folder) / file_name(CONNECTION.name, 2)).mkdir()
    (from_workers(folder) / file_name(CONNECTION.name, 3)).symlink_to("/etc/passwd")
    done, _ = spool.run()
    assert [opened(end, folder, SEAL, REMARKS.append) for end in done.ends] == [None] * 3
    assert len(REMARKS) == 3
    spool.run(remove=[end.path for end in done.ends])
    assert list(from_workers(folder).iterdir()) == []
    assert Path("/etc/passwd").exists()


def test_a_spool_that_disappears_is_made_anew(folder: Path, spool: Spool) -> None:
    put_worker_file(folder, b"data")
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(FilesError, match="No such file"):
        spool.run()
    assert words(spool.run()) == []
    assert from_workers(folder).stat().st_mode & 0o777 == 0o700


def test_where_the_parent_is_gone_too_nothing_is_made(folder: Path, spool: Spool) -> None:
    away = folder.parent.with_name("away")
    folder.parent.rename(away)
    with pytest.raises(FilesError, match="mounted"):
        spool.run()
    assert not folder.parent.exists()
    away.rename(folder.parent)
    spool.run()


def test_a_great_many_worker_files_come_in_portions(folder: Path, spool: Spool) -> None:
    for number in range(1, 1003):
        put_worker_file(folder, b"x", number)
    first, more = spool.run()
    assert more
    assert [path_of(end).name for end in first.ends] == [
        file_name(CONNECTION.name, n) for n in range(1, 1001)
    ]
    second, more = spool.run(remove=[end.path for end in first.ends])
    assert not more
    assert len(second.ends) == 2


def test_large_worker_files_come_in_portions(folder: Path, spool: Spool) -> None:
    for number in range(1, 4):
        put_worker_file(folder, b"x" * (40 * 1024 * 1024), number)
    first, more = spool.run()
    assert (len(first.ends), more) == (2, True)
    second, more = spool.run(remove=[end.path for end in first.ends])
    assert (len(second.ends), more) == (1, False)
