"""The queue of leases: nothing is used twice, the order is kept, nobody starves, nothing starts too late."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.worker.slots import HeldTask, Slots

MEMORY = 1000


def held(task: int, cpus: int = 1, memory: int | None = None, needs: float = 0.0) -> HeldTask:
    return HeldTask(Lease(AttemptKey(1, task, 1), "true", needs), BagContext(1, "/", "/", {}, cpus, memory))


def slots(processors: int = 4, deadline: float = 100.0) -> Slots:
    return Slots(processors, MEMORY, deadline)


def start_all(of: Slots, now: float = 0.0) -> list[int]:
    started = []
    while each := of.start_next(now):
        started.append(each.key.task)
    return started


def test_leases_start_in_order_as_far_as_they_fit() -> None:
    made = slots(3)
    for n in range(5):
        made.add(held(n))
    assert (made.free_processors, made.free_memory) == (0, MEMORY)
    assert start_all(made) == [0, 1, 2]
    made.end(AttemptKey(1, 1, 1))
    assert start_all(made) == [3]
    assert list(made.queue) == [AttemptKey(1, 4, 1)]


def test_memory_counts_as_processors_do() -> None:
    made = slots(4)
    for n in range(3):
        made.add(held(n, memory=400))
    assert start_all(made) == [0, 1]
    assert (made.free_processors, made.free_memory) == (1, 0)
    assert made.can_ever_hold(held(0, memory=MEMORY).bag)
    assert not made.can_ever_hold(held(0, memory=MEMORY + 1).bag)
    assert not made.can_ever_hold(held(0, cpus=5).bag)


def test_smaller_ones_pass_a_wide_head_but_not_for_ever() -> None:
    made = slots(4)
    made.add(held(0, cpus=2))
    assert start_all(made) == [0]
    made.add(held(1, cpus=4))
    for n in range(2, 20):
        made.add(held(n))
    passed = []
    while 1 not in [key.task for key in made.running]:
        passed += [n for n in start_all(made) if n != 1]
        made.end(next(iter(made.running)))
        passed += [n for n in start_all(made) if n != 1]
        assert len(passed) <= 4
    assert passed == [2, 3, 4, 5]


def test_a_new_head_may_be_passed_again() -> None:
    made = slots(2)
    made.add(held(0))
    start_all(made)
    made.add(held(1, cpus=2))
    made.add(held(2))
    assert start_all(made) == [2]
    made.take(AttemptKey(1, 1, 1))
    assert made._passed == 0


def test_nothing_starts_that_cannot_finish() -> None:
    made = slots(deadline=100.0)
    made.add(held(1, needs=60.1))
    made.add(held(2, needs=60.0))
    assert start_all(made, now=40.0) == [2]
    assert [each.key.task for each in made.too_late(40.0)] == [1]
    assert made.free_processors == 3


def test_a_start_that_failed_is_the_first_to_be_tried_again() -> None:
    made = slots(1)
    for n in range(3):
        made.add(held(n))
    assert made.start_next(0.0) is not None
    made.requeue(AttemptKey(1, 0, 1))
    assert [key.task for key in made.queue] == [0, 1, 2]
    assert start_all(made) == [0]


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 4), st.none() | st.integers(0, MEMORY), st.floats(0, 120)),
        st.sampled_from(["start", "end", "take", "late", "clear"]),
    ),
    max_size=60,
)


@given(ACTIONS, st.floats(0, 200))
def test_what_is_free_and_what_is_used_always_add_up(actions: list[object], now: float) -> None:
    made = slots(4)
    for n, action in enumerate(actions):
        if isinstance(action, tuple):
            made.add(held(n, *action))
        elif action == "start":
            start_all(made, now)
        elif action == "end" and made.running:
            made.end(next(iter(made.running)))
        elif action == "take" and made.queue:
            made.take(next(reversed(made.queue)))
        elif action == "late":
            assert all(100.0 - now < each.lease.needs for each in made.too_late(now))
        elif action == "clear":
            made.clear()
        used = sum(each.bag.cpus for each in made.running.values())
        memory = sum(each.bag.memory or 0 for each in made.running.values())
        queued = sum(each.bag.cpus for each in made.queue.values())
        assert used <= 4
        assert memory <= MEMORY
        assert made.free_processors == max(0, 4 - used - queued)
        assert not made.queue.keys() & made.running.keys()


@given(st.lists(st.tuples(st.integers(1, 4), st.none() | st.integers(0, MEMORY)), max_size=40))
def test_every_lease_runs_in_the_end(shapes: list[tuple[int, int | None]]) -> None:
    made = slots(4)
    for n, (cpus, memory) in enumerate(shapes):
        made.add(held(n, cpus, memory))
    seen = start_all(made)
    while made.running:
        made.end(next(iter(made.running)))
        seen += start_all(made)
    assert sorted(seen) == list(range(len(shapes)))
