"""What every mail spool does, in a folder here and behind a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.protocol.files.local import LOCAL_FILES
from adaptor.protocol.maildir import (
    LARGEST,
    UNREAD,
    SpoolConnection,
    file_name,
    for_worker,
    from_workers,
)
from adaptor.protocol.spool import DaemonFile, Exchange, Spool, SpoolError
from tests.protocol.spools import CONNECTION, distant, put_worker_file

RUN = "89abcdef"


@pytest.fixture(scope="module", params=["here", "distant"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Spool]]:
    folder = tmp_path_factory.mktemp("spools") / "spool" / "spool"
    files = LOCAL_FILES if request.param == "here" else distant()
    spool = Spool(folder, files)
    spool.locate()
    yield folder, spool
    files.close()


@pytest.fixture
def folder(place: tuple[Path, Spool]) -> Iterator[Path]:
    """The spool's folder; empty again afterwards."""
    folder, spool = place
    yield folder
    for path in from_workers(folder).iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
    spool.run(Exchange(pilots=[], collect=False))


@pytest.fixture
def spool(place: tuple[Path, Spool]) -> Spool:
    return place[1]


def test_the_spool_is_private(folder: Path, spool: Spool) -> None:
    assert spool.locate() == folder
    for each in (folder.parent, folder, from_workers(folder), folder / "out"):
        assert each.stat().st_mode & 0o777 == 0o700


def test_worker_files_come_by_number_until_they_are_done(folder: Path, spool: Spool) -> None:
    other = SpoolConnection(8, "89abcdef", 2)
    names = [
        put_worker_file(folder, b"2", 2),
        put_worker_file(folder, b"1", 1),
        put_worker_file(folder, b"o", 1, other),
    ]
    found = spool.run(Exchange()).files
    assert [each.data for each in found] == [b"1", b"o", b"2"]
    assert sorted(each.name for each in found) == sorted(names)
    assert [each.data for each in spool.run(Exchange(remove=names[:1])).files] == [b"1", b"o"]
    assert spool.run(Exchange(remove=[*names, "7-0123abcd-1.00000099"])).files == []


def test_posts_reach_boxes_and_are_whole_and_private(folder: Path, spool: Spool) -> None:
    for_worker(folder, CONNECTION.name).mkdir()
    files = [DaemonFile(CONNECTION.name, file_name(RUN, number), b"x" * number) for number in (1, 2)]
    assert spool.run(Exchange(write=files)).gone == []
    found = sorted(for_worker(folder, CONNECTION.name).iterdir())
    assert [path.read_bytes() for path in found] == [b"x", b"xx"]
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}


def test_a_box_that_is_gone_is_told(folder: Path, spool: Spool) -> None:
    outcome = spool.run(Exchange(write=[DaemonFile(CONNECTION.name, file_name(RUN, 1), b"x")]))
    assert outcome.gone == [CONNECTION.name]
    assert list((folder / "out").iterdir()) == []


def test_a_box_in_which_much_lies_unread_is_told(folder: Path, spool: Spool) -> None:
    for_worker(folder, CONNECTION.name).mkdir()
    files = [DaemonFile(CONNECTION.name, file_name(RUN, number), b"x") for number in range(1, UNREAD + 2)]
    assert spool.run(Exchange(write=files[:UNREAD])).full == []
    assert spool.run(Exchange(write=files[UNREAD:])).full == [CONNECTION.name]
    assert len(list(for_worker(folder, CONNECTION.name).iterdir())) == UNREAD


def test_an_exchange_that_does_not_collect_brings_nothing(folder: Path, spool: Spool) -> None:
    put_worker_file(folder, b"data")
    assert spool.run(Exchange(collect=False)).files == []
    assert len(spool.run(Exchange()).files) == 1


def test_what_ended_pilots_left_is_swept_away_and_worker_files_stay(folder: Path, spool: Spool) -> None:
    gone = SpoolConnection(8, "0123abcd", 1)
    for connection in (CONNECTION, gone):
        for_worker(folder, connection.name).mkdir()
        (for_worker(folder, connection.name) / file_name(RUN, 1)).write_bytes(b"x")
        (from_workers(folder) / f".{file_name(connection.name, 1)}").write_bytes(b"half")
    put_worker_file(folder, b"last words", connection=gone)
    (folder / "out" / "somebody's").mkdir()
    spool.run(Exchange(pilots=[7], collect=False))
    assert sorted(path.name for path in (folder / "out").iterdir()) == [CONNECTION.name, "somebody's"]
    assert {path.name for path in from_workers(folder).iterdir()} == {
        f".{file_name(CONNECTION.name, 1)}",
        file_name(gone.name, 1),
    }
    (folder / "out" / "somebody's").rmdir()


def test_strange_files_are_remarked_on_once_and_left_alone(folder: Path, spool: Spool) -> None:
    (from_workers(folder) / "notes \udcff\n.txt").write_bytes(b"mine")
    (from_workers(folder) / "dir").mkdir()
    put_worker_file(folder, b"data")
    first = spool.run(Exchange())
    assert [each.data for each in first.files] == [b"data"]
    assert len(first.remarks) == 2
    assert "notes" in "".join(first.remarks)
    assert spool.run(Exchange()).remarks == []
    assert (from_workers(folder) / "notes \udcff\n.txt").exists()


def test_what_bears_a_worker_files_name_and_is_none_is_removed_and_told(folder: Path, spool: Spool) -> None:
    huge = from_workers(folder) / file_name(CONNECTION.name, 1)
    with huge.open("wb") as file:
        file.truncate(LARGEST + 1)
    (from_workers(folder) / file_name(CONNECTION.name, 2)).mkdir()
    (from_workers(folder) / file_name(CONNECTION.name, 3)).symlink_to("/etc/passwd")
    outcome = spool.run(Exchange())
    assert outcome.files == []
    assert len(outcome.remarks) == 3
    assert list(from_workers(folder).iterdir()) == []
    assert Path("/etc/passwd").exists()


def test_names_that_lead_elsewhere_are_not_followed(folder: Path, spool: Spool) -> None:
    outside = folder.parent / "outside"
    outside.write_text("keep")
    spool.run(Exchange(remove=["../../outside"], write=[DaemonFile("../../x", "y", b"z")]))
    assert outside.read_text() == "keep"
    assert not (folder.parent / "x").exists()


def test_a_spool_that_disappears_is_made_anew(folder: Path, spool: Spool) -> None:
    put_worker_file(folder, b"data")
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(SpoolError, match="No such file"):
        spool.run(Exchange())
    assert spool.run(Exchange()).files == []
    assert from_workers(folder).stat().st_mode & 0o777 == 0o700


def test_where_the_parent_is_gone_too_nothing_is_made(folder: Path, spool: Spool) -> None:
    away = folder.parent.with_name("away")
    folder.parent.rename(away)
    with pytest.raises(SpoolError, match="mounted"):
        spool.run(Exchange())
    assert not folder.parent.exists()
    away.rename(folder.parent)
    spool.run(Exchange())


def test_a_great_many_worker_files_come_in_portions(folder: Path, spool: Spool) -> None:
    for number in range(1, 1003):
        put_worker_file(folder, b"x", number)
    first = spool.run(Exchange())
    assert first.more
    assert [each.name for each in first.files] == [file_name(CONNECTION.name, n) for n in range(1, 1001)]
    second = spool.run(Exchange(remove=[each.name for each in first.files]))
    assert not second.more
    assert len(second.files) == 2


def test_large_worker_files_come_in_portions(folder: Path, spool: Spool) -> None:
    for number in range(1, 4):
        put_worker_file(folder, b"x" * (40 * 1024 * 1024), number)
    first = spool.run(Exchange())
    assert (len(first.files), first.more) == (2, True)
    second = spool.run(Exchange(remove=[each.name for each in first.files]))
    assert (len(second.files), second.more) == (1, False)
