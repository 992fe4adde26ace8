"""Whatever comes from outside is taken or refused, never anything else: frames, access files, spool files.

`pytest --hypothesis-profile=campaign -k 'fuzz or zmtp' tests/protocol tests/daemon` tries a million examples.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor import api
from adaptor.protocol.access import Access, AccessError, Credentials, read_access
from adaptor.protocol.files import remote
from adaptor.protocol.keys import Keys, load_or_make_keys
from adaptor.protocol.maildir import (
    Envelope,
    Seal,
    SealError,
    file_name,
    parse_connection,
    parse_daemon_file,
    parse_worker_file,
    path_of,
)
from adaptor.protocol.messages import decode_from_worker, decode_to_worker, encode
from adaptor.protocol.spool import Spool
from tests.examples import examples
from tests.living import PATIENCE
from tests.protocol.test_messages import from_worker, to_worker

pytestmark = pytest.mark.fuzz

PATH = "in/1-0123abcd-1.00000001"
ENVELOPES = st.builds(Envelope, st.text(max_size=8), st.lists(st.binary(max_size=30), max_size=3))
NAMES = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=40),
    st.from_regex(r"\A[0-9]{1,20}-[0-9a-f]{8}-[0-9]{1,10}\.[0-9]{1,13}\Z"),
).filter(lambda name: name not in (".", "..") and len(name.encode()) < 200)


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes of a real message with some replaced, cut or put in; or any bytes at all."""
    data = bytearray(draw(st.one_of(whole, st.binary(max_size=200))))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(data)))
        cut = draw(st.integers(0, 6))
        data[place : place + cut] = draw(st.binary(max_size=6))
    return bytes(data)


def taken_or_refused(decode: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(msgspec.DecodeError):
        decode(data)


@given(damaged(from_worker.map(encode)))
@examples(300)
def test_what_a_worker_says(data: bytes) -> None:
    taken_or_refused(decode_from_worker, data)


@given(damaged(to_worker.map(encode)))
@examples(300)
def test_what_a_worker_is_told(data: bytes) -> None:
    taken_or_refused(decode_to_worker, data)


QUESTIONS = st.sampled_from(
    [
        api.GetBags("1-5"),
        api.Cancel([1, 2]),
        api.Forget([1, 2]),
        api.GetTasks(1, ["done"], 5, 100),
        api.Stop(pilots=True),
    ]
).map(api.encode_question)


@given(damaged(QUESTIONS))
@examples(300)
def test_questions_and_answers(data: bytes) -> None:
    taken_or_refused(api.decode_question, data)
    taken_or_refused(lambda data: api.decode_answer(api.GetBags(), data), data)


@pytest.fixture(scope="module")
def folder() -> object:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


ACCESS = msgspec.json.encode(
    Access(addresses=("tcp://h:1",), server="s" * 40, own=Credentials("p" * 40, "k" * 40))
)


@given(data=damaged(st.just(ACCESS)))
@examples(200)
def test_access_files(folder: Path, data: bytes) -> None:
    path = folder / "access.json"
    path.write_bytes(data)
    path.chmod(0o600)
    with contextlib.suppress(AccessError):
        assert isinstance(read_access(path), Access)


@given(data=damaged(st.just(b'{"server":{"certificate":"p","key":"s"},"worker":{},"client":{}}')))
@examples(100)
def test_key_files(folder: Path, data: bytes) -> None:
    (folder / "keys.json").write_bytes(data)
    with contextlib.suppress(AccessError):
        assert isinstance(load_or_make_keys(folder), Keys)


@given(damaged(ENVELOPES.map(lambda envelope: Seal("key").close(PATH, envelope))))
@examples(300)
def test_spool_files(data: bytes) -> None:
    with contextlib.suppress(SealError):
        assert Seal("key").close(PATH, Seal("key").open(PATH, data)) == data


@given(damaged(ENVELOPES.map(msgspec.msgpack.encode)))
@examples(200)
def test_spool_files_with_the_right_seal(content: bytes) -> None:
    """Another version may have written them."""
    seal = Seal("key")
    with contextlib.suppress(SealError):
        seal.open(PATH, seal._seal(PATH, content) + content)


@given(NAMES)
@examples(300)
def test_names_in_a_spool(name: str) -> None:
    found = parse_worker_file(name)
    if found is not None:
        again = parse_worker_file(file_name(found[0].name, found[1]))
        assert again == found
    parse_daemon_file(name)
    parse_connection(name)


@given(st.dictionaries(NAMES, st.binary(max_size=20), max_size=4))
@examples(60)
def test_a_spool_with_anything_in_it(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        spool = Spool(Path(name) / "parent" / "spool")
        for each, data in files.items():
            (spool.locate() / "in" / each).write_bytes(data)
        done, _ = spool.run(pilots=[1])
        ours = {each: data for each, data in files.items() if parse_worker_file(each)}
        assert {path_of(end).name: end.data for end in done.ends} == ours
        done, _ = spool.run(remove=[end.path for end in done.ends], pilots=[])
        assert done.ends == []


@given(st.binary(max_size=60), st.booleans())
@examples(100)
def test_frames_over_a_pipe(data: bytes, whole: bool) -> None:
    said = len(data).to_bytes(4, "big") + data if whole else data
    reading, writing = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(writing, said), os.close(writing)))
    writer.start()
    try:
        found = remote.receive(reading, time.monotonic() + PATIENCE)
        assert not whole or found == data
    except remote.FrameError:
        assert not whole
    finally:
        writer.join()
        os.close(reading)
