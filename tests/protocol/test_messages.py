"""The messages between daemon and worker: what is sent arrives, and nothing else is let in."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.messages import (
    AttemptKey,
    BagContext,
    Ending,
    FromWorker,
    Goodbye,
    Hello,
    Lease,
    Leaving,
    Orders,
    Report,
    Result,
    ToWorker,
    Welcome,
    decode_from_worker,
    decode_to_worker,
    encode,
)
from adaptor.resources import TaskSize

numbers = st.integers(0, 2**63 - 1)
seconds = st.floats(0, 1e10)
words = st.text(max_size=12)
environments = st.dictionaries(words, words, max_size=3)
keys = st.builds(AttemptKey, numbers, numbers, numbers)
key_lists = st.lists(keys, max_size=3)
results = st.lists(
    st.builds(
        Result,
        key=keys,
        ending=st.sampled_from(Ending),
        started=seconds,
        wall=seconds,
        cpu=seconds,
        peak_memory=numbers,
        exit_code=st.none() | st.integers(0, 255),
        signal=st.none() | st.integers(1, 64),
        error=st.none() | words,
        peak_gpu_memory=numbers,
    ),
    max_size=3,
)
sizes = st.builds(
    TaskSize,
    processors=numbers,
    memory=st.none() | numbers,
    gpus=st.floats(0, 100),
    gpu_type=words,
    nodes=numbers,
)
contexts = st.builds(
    BagContext,
    bag=numbers,
    cwd=words,
    output=words,
    environment=environments,
    task=sizes,
    bind=st.booleans(),
)
leases = st.builds(
    Lease,
    key=keys,
    command=words | st.lists(words, max_size=3),
    needs=seconds,
    cwd=st.none() | words,
    environment=st.none() | environments,
    name=st.none() | words,
    nodes=st.lists(words, max_size=3),
    takes_part=st.booleans(),
)
from_worker: st.SearchStrategy[FromWorker] = st.one_of(
    st.builds(
        Hello,
        pilot=numbers,
        node=words,
        pid=numbers,
        version=words,
        processors=numbers,
        memory=numbers,
        gpus=st.integers(0, 4096),
        gpu_type=words,
        deadline=seconds,
        holding=key_lists,
        started=key_lists,
        unacknowledged=results,
    ),
    st.builds(
        Report,
        results=results,
        started=key_lists,
        free_processors=numbers,
        free_memory=numbers,
        free_gpus=st.lists(st.floats(0, 1), max_size=3),
        queued=numbers,
        load=st.lists(st.tuples(keys, seconds), max_size=3),
    ),
    st.builds(Goodbye, why=st.sampled_from(Leaving), results=results),
)
to_worker: st.SearchStrategy[ToWorker] = st.one_of(
    st.builds(
        Welcome,
        heartbeat=seconds,
        idle_timeout=seconds,
        grace_time=seconds,
        patience=seconds,
        acknowledged=key_lists,
    ),
    st.builds(
        Orders,
        acknowledged=key_lists,
        bags=st.lists(contexts, max_size=2),
        leases=st.lists(leases, max_size=3),
        abort=key_lists,
        give_back=key_lists,
        leave=words,
        say_hello=st.booleans(),
    ),
)


@given(from_worker)
def test_what_a_worker_says_arrives_at_the_daemon(message: FromWorker) -> None:
    assert decode_from_worker(encode(message)) == message


@given(to_worker)
def test_what_the_daemon_says_arrives_at_a_worker(message: ToWorker) -> None:
    assert decode_to_worker(encode(message)) == message


@given(from_worker, to_worker)
def test_neither_side_takes_its_own_words(worker: FromWorker, daemon: ToWorker) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_to_worker(encode(worker))
    with pytest.raises(msgspec.ValidationError):
        decode_from_worker(encode(daemon))


@given(from_worker, st.data())
def test_a_part_of_a_message_is_refused(message: FromWorker, data: st.DataObject) -> None:
    whole = encode(message)
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(msgspec.DecodeError):
        decode_from_worker(part)


@given(st.binary(max_size=200))
def test_nonsense_is_refused_in_one_way_only(data: bytes) -> None:
    """No message of either kind is shorter than its own type's name, so these cannot be one by chance."""
    for decode in (decode_from_worker, decode_to_worker):
        try:
            decode(data)
        except msgspec.DecodeError:
            continue
        assert b"type" in data


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x82\xa4type\xa6Report\xa3zzz" + b"\x91" * 200_000 + b"\xc0", id="nested too deep"),
        pytest.param(b"\x82\xa4type\xa7Goodbye\xa3why\xa2\xff\xfe", id="a word that is no UTF-8"),
        pytest.param(b"\x82\xa4type\xa5Hello\xa4node\xa2\xff\xfe", id="text that is no UTF-8"),
        pytest.param(encode(Report()) + b"x", id="something behind it"),
        pytest.param(msgspec.msgpack.encode({"type": "Goodbye", "why": "bored"}), id="a reason not known"),
        pytest.param(msgspec.msgpack.encode({"type": "Report", "queued": "1"}), id="a text for a number"),
        pytest.param(msgspec.msgpack.encode({"type": "Hello"}), id="without what must be there"),
    ],
)
def test_a_hostile_message_is_refused_as_any_other(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_from_worker(data)


def test_a_newer_workers_further_fields_are_passed_over() -> None:
    report = {**msgspec.to_builtins(Report(queued=3)), "new": [1, {"a": 2}]}
    assert decode_from_worker(msgspec.msgpack.encode(report)) == Report(queued=3)
