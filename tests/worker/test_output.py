"""Where the output of tasks goes: folders and files that others may have put there are refused."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from adaptor.outputs.finding import Outputs, open_place
from adaptor.private_files import open_output
from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.worker.output import LONGEST, CannotStartError, OutputFolder, ShortageError
from adaptor.worker.slots import HeldTask
from tests.worker.attempts import KEY

STRANGER = 54321
"""A user id without an account."""
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def usual(bag: BagContext, tmp_path: Path) -> BagContext:
    """A bag whose output folder has the name that the adaptor chooses."""
    return msgspec.structs.replace(bag, output=str(tmp_path / "adaptor-1"))


def write(bag: BagContext, text: str = "new", key: AttemptKey = KEY) -> None:
    """Open an attempt's files and write to its standard output."""
    files = OutputFolder(bag).open(HeldTask(Lease(key, "true", 0.0), bag))
    os.write(files.out, text.encode())
    files.close()


def test_an_output_of_ours_is_written_anew(usual: BagContext) -> None:
    """Another state directory counts its bags from 1 again, and a lost attempt may have written."""
    write(usual, "a long text")
    write(usual, "short")
    assert Path(usual.output, "1.out").read_text() == "short"


def test_a_task_gets_a_descriptor_that_waits(usual: BagContext) -> None:
    folder = OutputFolder(usual)
    for _ in range(2):  # new, then there already
        files = folder.open(HeldTask(Lease(KEY, "true", 0.0), usual))
        assert os.get_blocking(files.out)
        files.close()


@root
def test_a_strangers_folder_under_the_usual_name_is_refused(usual: BagContext) -> None:
    Path(usual.output).mkdir(mode=0o777)
    os.chown(usual.output, STRANGER, STRANGER)
    with pytest.raises(CannotStartError, match=r"adaptor-1: not used .* belongs to user 54321; .*--output"):
        write(usual)
    assert list(Path(usual.output).iterdir()) == []


@root
def test_a_folder_that_was_named_may_be_a_groups(bag: BagContext) -> None:
    Path(bag.output).mkdir()
    os.chown(bag.output, STRANGER, STRANGER)
    write(bag)
    assert Path(bag.output, "1.out").read_text() == "new"


@root
def test_a_strangers_file_is_neither_emptied_nor_written(bag: BagContext) -> None:
    write(bag, "old")
    os.chown(Path(bag.output, "1.out"), STRANGER, STRANGER)
    with pytest.raises(CannotStartError, match=r"1\.out: .* it belongs to user 54321"):
        write(bag)
    assert Path(bag.output, "1.out").read_text() == "old"


@root
def test_a_strangers_link_in_place_of_the_folder_is_refused(bag: BagContext, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    os.symlink(tmp_path / "secret", bag.output)
    os.lchown(bag.output, STRANGER, STRANGER)
    with pytest.raises(CannotStartError, match="a link that user 54321 has made"):
        write(bag)
    assert list((tmp_path / "secret").iterdir()) == []


@pytest.mark.parametrize("target", ["real", "{}/real", "again"])
def test_ones_own_link_to_a_folder_is_followed(bag: BagContext, tmp_path: Path, target: str) -> None:
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "again")
    os.symlink(target.format(tmp_path), bag.output)
    write(bag)
    assert (tmp_path / "real" / "1.out").read_text() == "new"


def test_a_circle_of_links_ends(bag: BagContext, tmp_path: Path) -> None:
    os.symlink("there", bag.output)
    os.symlink("out", tmp_path / "there")
    with pytest.raises(CannotStartError, match="Too many levels of symbolic links"):
        write(bag)


def planted_link(path: Path) -> None:
    path.symlink_to("elsewhere")


def planted_name(path: Path) -> None:
    (path.parent / "elsewhere").write_text("old")
    os.link(path.parent / "elsewhere", path)


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (planted_link, "it is a link"),
        (planted_name, "it is a second name of another file"),
        (os.mkfifo, "it is no plain file"),
        (Path.mkdir, "Is a directory"),
    ],
)
def test_what_is_planted_is_refused_and_stays(
    bag: BagContext, plant: Callable[[Path], object], why: str
) -> None:
    path = Path(bag.output, "1.err")
    path.parent.mkdir()
    plant(path)
    with pytest.raises(CannotStartError, match=rf"out/1\.err: the task's output cannot be written: {why}"):
        write(bag)
    elsewhere = path.parent / "elsewhere"
    assert not elsewhere.exists() or elsewhere.read_text() == "old"


def test_a_folder_that_cannot_be_made_says_so(bag: BagContext) -> None:
    Path(bag.output).write_text("")
    with pytest.raises(CannotStartError, match="out: the output folder cannot be made: Not a directory"):
        write(bag)


def test_a_file_descriptor_too_many_is_a_shortage(bag: BagContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object, **_more: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("adaptor.worker.output.open_output", none_left)
    with pytest.raises(ShortageError):
        write(bag)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_attempts_wait_for_a_disk_that_takes_no_file(
    bag: BagContext, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """One of them fails when the patience is over, and the next ones wait again."""

    def refuse(*_: object, **_more: object) -> int:
        raise OSError(number, os.strerror(number))

    folder, clock = OutputFolder(bag), {"now": 0.0}
    monkeypatch.setattr("adaptor.worker.output.time.monotonic", lambda: clock["now"])
    with monkeypatch.context() as broken:
        broken.setattr("adaptor.worker.output.open_output", refuse)
        for at, error in (
            (0.0, ShortageError),
            (LONGEST - 1, ShortageError),
            (LONGEST, CannotStartError),
            (LONGEST + 1, ShortageError),
        ):
            clock["now"] = at
            with pytest.raises(error, match=re.escape(os.strerror(number))):
                folder.open(HeldTask(Lease(KEY, ["true"], 0.0), bag))
    folder.open(HeldTask(Lease(KEY, ["true"], 0.0), bag)).close()


def test_many_workers_make_the_folder_at_the_same_time(usual: BagContext) -> None:
    errors: list[Exception] = []
    together = threading.Barrier(8)

    def work(number: int) -> None:
        together.wait()
        try:
            write(usual, str(number), AttemptKey(1, number, 1))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [Path(usual.output, f"{number}.out").read_text() for number in range(8)] == list("01234567")


def test_a_folder_that_vanishes_before_its_files_are_made_is_made_again(
    bag: BagContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []

    def late(name: str, folder: int) -> int:
        if not removed:
            removed.append(bag.output)
            Path(bag.output).rmdir()
        return open_output(name, folder)

    monkeypatch.setattr("adaptor.worker.output.open_output", late)
    write(bag)
    assert Path(bag.output, "1.out").read_text() == "new"


def test_no_descriptor_is_left_open(bag: BagContext) -> None:
    def descriptors() -> list[str]:
        """Those that are open on what this test works with; other threads have theirs."""
        found = []
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/self/fd/{name}"))
        return sorted(path for path in found if path.startswith((bag.cwd, os.devnull)))

    before = descriptors()
    write(bag)
    Path(bag.output, "2.err").mkdir()
    with pytest.raises(CannotStartError):
        write(bag, key=AttemptKey(1, 2, 1))
    with pytest.raises(CannotStartError):
        write(msgspec.structs.replace(bag, output="/dev/null"))
    OutputFolder(bag).ended(KEY, alone=False)
    assert descriptors() == before


def test_a_spare_file_becomes_the_next_attempts(bag: BagContext) -> None:
    folder = OutputFolder(bag)
    held = HeldTask(Lease(KEY, "true", 0.0), bag)
    folder.open(held).close()
    inode = Path(bag.output, "1.err").stat().st_ino
    folder.ended(KEY, alone=True)
    folder.open(HeldTask(Lease(AttemptKey(1, 2, 1), "true", 0.0), bag)).close()
    assert Path(bag.output, "2.out").stat().st_ino == inode
    folder.ended(AttemptKey(1, 2, 1), alone=True)
    folder.tidy()
    assert list(Path(bag.output).iterdir()) == []


def ended(folder: OutputFolder, bag: BagContext, task: int) -> None:
    """One attempt from its start to its end; odd ones write nothing."""
    key = AttemptKey(1, task, 1)
    files = folder.open(HeldTask(Lease(key, "true", 0.0), bag))
    if task % 2 == 0:
        os.write(files.out, f"out {task}".encode())
    files.close()
    folder.ended(key, alone=True)


def test_packed_outputs_are_few_files(bag: BagContext) -> None:
    packed = msgspec.structs.replace(bag, output_files="packed")
    folder = OutputFolder(packed)
    for task in range(100):
        ended(folder, packed, task)
    assert len(list(Path(bag.output).iterdir())) < 40
    folder.tidy()
    assert len(list(Path(bag.output).iterdir())) == 2
    found = Outputs(bag.output)
    place = found.find(98, 1, "stdout")
    assert place is not None
    with open_place(place) as file:
        assert file.read(place.size or 0) == b"out 98"


def test_what_a_process_may_still_write_to_is_not_packed(bag: BagContext) -> None:
    packed = msgspec.structs.replace(bag, output_files="packed")
    folder = OutputFolder(packed)
    files = folder.open(HeldTask(Lease(KEY, "true", 0.0), packed))
    os.write(files.out, b"text")
    folder.ended(KEY, alone=False)
    folder.tidy()
    os.write(files.out, b" and more")
    files.close()
    assert [each.read_text() for each in Path(bag.output).iterdir()] == ["text and more"]


def test_without_output_files_nothing_is_made(bag: BagContext) -> None:
    none = msgspec.structs.replace(bag, output_files="none")
    folder = OutputFolder(none)
    ended(folder, none, 0)
    folder.tidy()
    assert not Path(bag.output).exists()
