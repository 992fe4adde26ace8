"""Order and limits of a spool's files, without files: what is put in comes out once and in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.spool import flow
from adaptor.protocol.spool.flow import GAP, TARGET, UNREAD, Arrival, Incoming, Outgoing


def write_all(outgoing: Outgoing) -> list[list[bytes]]:
    files = []
    while (file := outgoing.due(0)) is not None:
        files.append(file.messages)
        outgoing.written()
    return files


def test_what_gathers_goes_into_one_file() -> None:
    outgoing = Outgoing()
    for word in (b"a", b"b", b"c"):
        assert outgoing.add(word)
    assert write_all(outgoing) == [[b"a", b"b", b"c"]]
    assert outgoing.due(0) is None


def test_files_are_not_much_larger_than_the_target() -> None:
    outgoing = Outgoing()
    half = b"x" * (TARGET // 2)
    for message in (half, half, b"y", half * 5, b"z"):
        outgoing.add(message)
    assert [[len(message) for message in file] for file in write_all(outgoing)] == [
        [len(half), len(half)],
        [1],
        [len(half) * 5],
        [1],
    ]


def test_only_few_files_lie_unread_and_what_comes_then_waits() -> None:
    outgoing = Outgoing()
    for number in range(UNREAD + 5):
        outgoing.add(b"%d" % number)
        if (file := outgoing.due(0)) is not None:
            assert file.number == number + 1
            outgoing.written()
    assert len(outgoing.unread) == UNREAD
    outgoing.note_read(1)
    assert write_all(outgoing) == [[b"%d" % number for number in range(UNREAD, UNREAD + 5)]]


def test_a_reader_that_says_too_much_is_not_believed() -> None:
    outgoing = Outgoing()
    outgoing.add(b"a")
    outgoing.due(0)
    outgoing.written()
    outgoing.note_read(99)
    assert list(outgoing.unread) == []
    outgoing.add(b"b")
    assert outgoing.due(0) is not None


def test_at_the_end_everything_may_be_written() -> None:
    outgoing = Outgoing()
    for _ in range(UNREAD):
        outgoing.add(b"a")
        outgoing.due(0)
        outgoing.written()
    outgoing.add(b"farewell")
    assert outgoing.due(0) is None
    file = outgoing.due(0, all=True)
    assert file is not None
    assert file.messages == [b"farewell"]


def test_how_far_was_read_is_told_in_time_although_there_is_nothing_to_say() -> None:
    outgoing = Outgoing()
    assert outgoing.due(UNREAD // 2 - 1) is None
    file = outgoing.due(UNREAD // 2)
    assert file is not None
    assert (file.messages, file.read) == ([], UNREAD // 2)
    outgoing.written()
    assert outgoing.due(UNREAD // 2) is None
    assert outgoing.due(UNREAD) is not None
    outgoing.written()
    assert outgoing.due(1) is not None, "the other side has begun anew"


def test_two_that_have_much_to_say_do_not_wait_for_each_other() -> None:
    here, there = Outgoing(), Outgoing()
    for outgoing in (here, there):
        for _ in range(UNREAD):
            outgoing.add(b"x")
            outgoing.due(0)
            outgoing.written()
        outgoing.add(b"last")
        assert outgoing.due(0) is None
    answer = there.due(UNREAD)
    assert answer is not None
    here.note_read(answer.read)
    assert here.due(0) is not None


def test_a_file_that_could_not_be_written_stays_due_with_its_number() -> None:
    outgoing = Outgoing()
    outgoing.add(b"a")
    first = outgoing.due(0)
    outgoing.add(b"b")
    assert outgoing.due(0) == first
    outgoing.written()
    second = outgoing.due(0)
    assert first is not None
    assert second is not None
    assert (first.messages, second.messages) == ([b"a"], [b"b"])
    assert second.number == first.number + 1


def test_memory_is_limited() -> None:
    outgoing = Outgoing()
    large = b"x" * (flow.MEMORY // 2)
    assert outgoing.add(large)
    assert outgoing.add(large)
    assert not outgoing.add(b"more")
    outgoing.due(0)
    assert outgoing.add(b"more")


def test_a_gap_is_waited_for_and_then_given_up() -> None:
    incoming = Incoming()
    incoming.took(1)
    assert incoming.judge(3, 100.0) is Arrival.EARLY
    assert incoming.judge(3, 100.0 + GAP / 2) is Arrival.EARLY
    assert incoming.judge(2, 100.0 + GAP / 2) is Arrival.TAKE
    incoming.took(2)
    assert incoming.judge(4, 200.0) is Arrival.EARLY, "a new gap is waited for anew"
    assert incoming.judge(4, 200.0 + GAP) is Arrival.TAKE
    incoming.took(4)
    assert incoming.judge(3, 300.0) is Arrival.PAST


def test_a_reader_that_was_restarted_begins_where_the_writer_says() -> None:
    incoming = Incoming()
    incoming.begin_at(5)
    assert incoming.judge(6, 100.0) is Arrival.EARLY
    assert incoming.judge(5, 100.0) is Arrival.TAKE
    incoming.took(5)
    incoming.begin_at(3)
    assert incoming.last == 5, "a file that was delayed does not lead back"


@given(st.lists(st.sets(st.integers(1, 12)), max_size=30))
def test_whatever_a_listing_shows_each_file_is_taken_once_and_in_order(listings: list[set[int]]) -> None:
    incoming = Incoming()
    taken = []
    for now, shown in enumerate(listings):
        for number in sorted(shown):
            if incoming.judge(number, now * 0.01) is Arrival.TAKE:
                incoming.took(number)
                taken.append(number)
    assert taken == list(range(1, len(taken) + 1))


def test_the_pace_slows_down_to_its_limit_and_speeds_up_again() -> None:
    from adaptor.protocol.spool.pace import QUICKEST, Pace

    pace = Pace(slowest=1.0)
    pauses = [pace.pause]
    for _ in range(20):
        pace.slow_down()
        pauses.append(pace.pause)
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1.0
    pace.speed_up()
    assert pace.pause == QUICKEST
