"""A worker writes into no spool but its own user's, and reads the daemon's files however they come."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.access import Access, Credentials
from adaptor.protocol.files.local import FilesError
from adaptor.protocol.maildir import Envelope, Seal, address_of, file_name, for_worker
from adaptor.protocol.spool import Spool
from adaptor.worker.spool_transport import FilesOfDaemon, SpoolConnector
from adaptor.worker.transport import Say, TransportError

ACCESS = Access(addresses=(), server="", own=Credentials("", "secret"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_strangers_spool_is_refused(tmp_path: Path) -> None:
    spool = tmp_path / "spools" / "spool"
    Spool(spool).locate()
    connector = SpoolConnector("7-n1-1", os.open(os.devnull, os.O_RDONLY), lambda _text: None)
    connector.connect(ACCESS, address_of(spool)).close(0)
    os.chown(spool, 54321, 54321)
    with pytest.raises(TransportError, match="belongs to user 54321"):
        connector.connect(ACCESS, address_of(spool))
    assert list((spool / "out").iterdir()) == []


SEAL = Seal("key")
RUNS = ("89abcdef", "01234567")


def connected(spool: Path, say: Say = lambda _text: None) -> tuple[FilesOfDaemon, Path]:
    folder = for_worker(spool, "7-0123abcd-1")
    folder.mkdir(parents=True)
    return FilesOfDaemon(spool, "7-0123abcd-1", SEAL, say), folder


def envelope(run: str, number: int) -> bytes:
    name = file_name(run, number)
    return SEAL.close(f"out/7-0123abcd-1/{name}", Envelope("7-n1-1", [f"{run} {number}".encode()]))


shown = st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["whole", "whole", "torn", "being written"])))


@given(st.lists(shown, max_size=8), st.integers(0, 8))
def test_files_that_come_late_unordered_doubled_or_torn(looks: list[list[tuple[int, str]]], new: int) -> None:
    """Each is taken once, in the order of the numbers; the daemon is restarted before look `new`."""
    with tempfile.TemporaryDirectory() as name:
        said = list[str]()
        answers, folder = connected(Path(name), said.append)
        last, expected = dict.fromkeys(RUNS, 0), list[bytes]()
        heard: list[bytes] = []
        for count, look in enumerate(looks):
            run = RUNS[count >= new]
            present: dict[int, bytes] = {}
            for number, state in look:
                data = envelope(run, number)
                if state == "being written":
                    (folder / f".{file_name(run, number)}").write_bytes(data[:40])
                else:
                    present[number] = data if state == "whole" else data[:-1]
            for number, data in present.items():
                (folder / file_name(run, number)).write_bytes(data)
            for number in sorted(present):
                if number > last[run] and present[number] == envelope(run, number):
                    expected.append(f"{run} {number}".encode())
                last[run] = max(last[run], number)
            heard += answers.fetch()
            assert heard == expected
            assert [path for path in folder.iterdir() if not path.name.startswith(".")] == []


def test_what_an_earlier_run_of_the_daemon_wrote_is_late_after_the_first_word_of_the_next(
    tmp_path: Path,
) -> None:
    answers, folder = connected(tmp_path)
    old, new = RUNS
    for run, number in ((old, 1), (new, 1), (old, 2)):
        (folder / file_name(run, number)).write_bytes(envelope(run, number))
        heard = answers.fetch()
        assert heard == ([] if number == 2 else [f"{run} {number}".encode()])
    assert list(folder.iterdir()) == []


def test_a_file_that_cannot_be_read_now_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, folder = connected(tmp_path)
    (folder / file_name(RUNS[0], 1)).write_bytes(envelope(RUNS[0], 1))

    def fail(_path: Path) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("adaptor.protocol.files.local.open_ours", fail)
        with pytest.raises(FilesError, match="Input/output"):
            answers.fetch()
    assert answers.fetch() == [f"{RUNS[0]} 1".encode()]
