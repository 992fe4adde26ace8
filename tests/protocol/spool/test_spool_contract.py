"""What every mail room does, in a folder here and behind a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.protocol.spool.directory import DirectoryRoom
from adaptor.protocol.spool.exchange import Errand, MailRoom, MailRoomError, Post
from adaptor.protocol.spool.layout import LARGEST, Box, answer_name, inbox, letter_name, outbox
from tests.protocol.spool.spools import BOX, distant, put_letter

LIFE = "89abcdef"


@pytest.fixture(scope="module", params=["here", "distant"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, MailRoom]]:
    folder = tmp_path_factory.mktemp("mail") / "mailbox" / "room"
    room: MailRoom = DirectoryRoom(folder) if request.param == "here" else distant(folder)
    room.locate()
    yield folder, room
    room.close()


@pytest.fixture
def folder(place: tuple[Path, MailRoom]) -> Iterator[Path]:
    """The room's folder; empty again afterwards."""
    folder, room = place
    yield folder
    for path in inbox(folder).iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
    room.run(Errand(pilots=[], collect=False))


@pytest.fixture
def room(place: tuple[Path, MailRoom]) -> MailRoom:
    return place[1]


def test_the_room_is_private(folder: Path, room: MailRoom) -> None:
    assert room.locate() == folder
    for each in (folder.parent, folder, inbox(folder), folder / "out"):
        assert each.stat().st_mode & 0o777 == 0o700


def test_letters_come_by_number_until_they_are_done(folder: Path, room: MailRoom) -> None:
    other = Box(8, "89abcdef", 2)
    names = [put_letter(folder, b"2", 2), put_letter(folder, b"1", 1), put_letter(folder, b"o", 1, other)]
    found = room.run(Errand()).letters
    assert [each.data for each in found] == [b"1", b"o", b"2"]
    assert sorted(each.name for each in found) == sorted(names)
    assert [each.data for each in room.run(Errand(done=names[:1])).letters] == [b"1", b"o"]
    assert room.run(Errand(done=[*names, "7-0123abcd-1.00000099"])).letters == []


def test_posts_reach_boxes_and_are_whole_and_private(folder: Path, room: MailRoom) -> None:
    outbox(folder, BOX.name).mkdir()
    posts = [Post(BOX.name, answer_name(LIFE, number), b"x" * number) for number in (1, 2)]
    assert room.run(Errand(posts=posts)).gone == []
    found = sorted(outbox(folder, BOX.name).iterdir())
    assert [path.read_bytes() for path in found] == [b"x", b"xx"]
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}


def test_a_box_that_is_gone_is_told(folder: Path, room: MailRoom) -> None:
    outcome = room.run(Errand(posts=[Post(BOX.name, answer_name(LIFE, 1), b"x")]))
    assert outcome.gone == [BOX.name]
    assert list((folder / "out").iterdir()) == []


def test_an_errand_that_does_not_collect_brings_nothing(folder: Path, room: MailRoom) -> None:
    put_letter(folder, b"data")
    assert room.run(Errand(collect=False)).letters == []
    assert len(room.run(Errand()).letters) == 1


def test_what_ended_pilots_left_is_swept_away_and_letters_stay(folder: Path, room: MailRoom) -> None:
    gone = Box(8, "0123abcd", 1)
    for box in (BOX, gone):
        outbox(folder, box.name).mkdir()
        (outbox(folder, box.name) / answer_name(LIFE, 1)).write_bytes(b"x")
        (inbox(folder) / f".{letter_name(box.name, 1)}").write_bytes(b"half")
    put_letter(folder, b"last words", box=gone)
    (folder / "out" / "somebody's").mkdir()
    room.run(Errand(pilots=[7], collect=False))
    assert sorted(path.name for path in (folder / "out").iterdir()) == [BOX.name, "somebody's"]
    assert {path.name for path in inbox(folder).iterdir()} == {
        f".{letter_name(BOX.name, 1)}",
        letter_name(gone.name, 1),
    }
    (folder / "out" / "somebody's").rmdir()


def test_strange_files_are_remarked_on_once_and_left_alone(folder: Path, room: MailRoom) -> None:
    (inbox(folder) / "notes \udcff\n.txt").write_bytes(b"mine")
    (inbox(folder) / "dir").mkdir()
    put_letter(folder, b"data")
    first = room.run(Errand())
    assert [each.data for each in first.letters] == [b"data"]
    assert len(first.remarks) == 2
    assert "notes" in "".join(first.remarks)
    assert room.run(Errand()).remarks == []
    assert (inbox(folder) / "notes \udcff\n.txt").exists()


def test_what_bears_a_letters_name_and_is_none_is_removed_and_told(folder: Path, room: MailRoom) -> None:
    huge = inbox(folder) / letter_name(BOX.name, 1)
    with huge.open("wb") as file:
        file.truncate(LARGEST + 1)
    (inbox(folder) / letter_name(BOX.name, 2)).mkdir()
    (inbox(folder) / letter_name(BOX.name, 3)).symlink_to("/etc/passwd")
    outcome = room.run(Errand())
    assert outcome.letters == []
    assert len(outcome.remarks) == 3
    assert list(inbox(folder).iterdir()) == []
    assert Path("/etc/passwd").exists()


def test_names_that_lead_elsewhere_are_not_followed(folder: Path, room: MailRoom) -> None:
    outside = folder.parent / "outside"
    outside.write_text("keep")
    room.run(Errand(done=["../../outside"], posts=[Post("../../x", "y", b"z")]))
    assert outside.read_text() == "keep"
    assert not (folder.parent / "x").exists()


def test_a_room_that_disappears_is_made_anew(folder: Path, room: MailRoom) -> None:
    put_letter(folder, b"data")
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(MailRoomError, match="No such file"):
        room.run(Errand())
    assert room.run(Errand()).letters == []
    assert inbox(folder).stat().st_mode & 0o777 == 0o700


def test_where_the_parent_is_gone_too_nothing_is_made(folder: Path, room: MailRoom) -> None:
    away = folder.parent.with_name("away")
    folder.parent.rename(away)
    with pytest.raises(MailRoomError, match="mounted"):
        room.run(Errand())
    assert not folder.parent.exists()
    away.rename(folder.parent)
    room.run(Errand())


def test_a_great_many_letters_come_in_portions(folder: Path, room: MailRoom) -> None:
    for number in range(1, 1003):
        put_letter(folder, b"x", number)
    first = room.run(Errand())
    assert first.more
    assert [each.name for each in first.letters] == [letter_name(BOX.name, n) for n in range(1, 1001)]
    second = room.run(Errand(done=[each.name for each in first.letters]))
    assert not second.more
    assert len(second.letters) == 2


def test_large_letters_come_in_portions(folder: Path, room: MailRoom) -> None:
    for number in range(1, 4):
        put_letter(folder, b"x" * (40 * 1024 * 1024), number)
    first = room.run(Errand())
    assert (len(first.letters), first.more) == (2, True)
    second = room.run(Errand(done=[each.name for each in first.letters]))
    assert (len(second.letters), second.more) == (1, False)
