"""The workers of a node share one copy; the last one removes it, and the next what a dead one left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from adaptor.bag_spec import Bundle
from adaptor.bundles import copies
from adaptor.bundles.copies import Copy, copy_of, remove_unused
from adaptor.bundles.unpacking import DamagedBundleError
from tests.bundles.staged import archive_of, packed
from tests.living import PATIENCE


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def bundle(tmp_path: Path, state: Path) -> Bundle:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("content")
    return packed(state, tmp_path / "data")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    folder = tmp_path / "node"
    folder.mkdir(mode=0o700)
    return folder


def copied(state: Path, bundle: Bundle, node: Path) -> tuple[Copy, bool]:
    with archive_of(state, bundle).open("rb") as archive:
        return copy_of(bundle, archive, str(node))


def test_the_second_worker_uses_the_copy_and_the_last_removes_it(
    state: Path, bundle: Bundle, node: Path
) -> None:
    first, made = copied(state, bundle, node)
    second, again = copied(state, bundle, node)
    assert (made, again) == (True, False)
    first.release()
    assert Path(second.relocation.root, "data", "file").read_text() == "content"
    second.release()
    assert not list(node.iterdir())


def test_workers_at_the_same_time_make_one_copy(state: Path, bundle: Bundle, node: Path) -> None:
    made: list[tuple[Copy, bool]] = []
    threads = [threading.Thread(target=lambda: made.append(copied(state, bundle, node))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(new for _, new in made) == [False] * 7 + [True]
    for copy, _ in made:
        copy.release()
    assert not list(node.iterdir())


def test_two_workers_that_both_find_no_copy_do_not_wait_for_each_other(
    state: Path, bundle: Bundle, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that makes the copy uses it for as long as it lives."""
    both, looked, is_there = threading.Barrier(2), threading.local(), copies._is_there

    def there(root: str) -> bool:
        found = is_there(root)
        if not hasattr(looked, "once"):
            looked.once = both.wait(PATIENCE)
        return found

    monkeypatch.setattr(copies, "_is_there", there)
    made: list[tuple[Copy, bool]] = []
    threads = [
        threading.Thread(target=lambda: made.append(copied(state, bundle, node)), daemon=True)
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(new for _, new in made) == [False, True]
    for copy, _ in made:
        copy.release()


_WORKER = """
import sys
from pathlib import Path
import msgspec
from adaptor.bag_spec import Bundle
from adaptor.bundles.copies import copy_of
bundle = msgspec.json.decode(sys.argv[1], type=Bundle)
copy, _ = copy_of(bundle, open(sys.argv[2], "rb"), sys.argv[3])
print("made", flush=True)
sys.stdin.read()
"""


def test_the_copy_of_a_killed_worker_goes_with_the_next_look(
    tmp_path: Path, state: Path, bundle: Bundle, node: Path
) -> None:
    import msgspec

    words = [sys.executable, "-c", _WORKER, msgspec.json.encode(bundle).decode()]
    worker = subprocess.Popen(
        [*words, str(archive_of(state, bundle)), str(node)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "made\n"
    remove_unused(str(node))
    assert len(list(node.iterdir())) == 2, "it is in use"
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    (tmp_path / "other").write_text("other")
    other = packed(state, tmp_path / "other")
    copy, _ = copied(state, other, node)
    assert sorted(path.name for path in node.iterdir()) == sorted(
        [other.digest[:24], f"{other.digest[:24]}.lock"]
    )
    copy.release()


def test_a_half_made_or_half_removed_copy_is_none(state: Path, bundle: Bundle, node: Path) -> None:
    name = bundle.digest[:24]
    for part in (".new", ".old"):
        (node / f"{name}{part}" / "data").mkdir(parents=True)
    (node / f"{name}.lock").touch()
    copy, made = copied(state, bundle, node)
    assert made
    assert (node / name / "data" / "file").read_text() == "content"
    copy.release()
    assert not list(node.iterdir())


def test_nothing_is_left_of_a_copy_that_cannot_be_made(
    state: Path, bundle: Bundle, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_of(state, bundle).write_bytes(b"changed")
    with pytest.raises(DamagedBundleError):
        copied(state, bundle, node)
    assert not list(node.iterdir())

    def full(*_given: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(copies, "unpack", full)
    with pytest.raises(OSError, match="No space left"):
        copied(state, bundle, node)
    assert not list(node.iterdir())
