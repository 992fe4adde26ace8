"""The queue of leases: nothing is used twice, the order is kept, nobody starves, nothing starts too late."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.resources import TaskSize
from adaptor.worker.binding import Binding
from adaptor.worker.slots import PAUSE, TURN, HeldTask, Slots

MEMORY = 1000


def held(task: int, cpus: int = 1, memory: int | None = None, needs: float = 0.0) -> HeldTask:
    size = TaskSize(processors=cpus, memory=memory)
    return HeldTask(Lease(AttemptKey(1, task, 1), "true", needs), BagContext(1, "/", "/", {}, size))


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
    assert made.can_ever_hold(held(0, memory=MEMORY))
    assert not made.can_ever_hold(held(0, memory=MEMORY + 1))
    assert not made.can_ever_hold(held(0, cpus=5))


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
        used = sum(each.bag.task.processors for each in made.running.values())
        memory = sum(each.bag.task.memory or 0 for each in made.running.values())
        queued = sum(each.bag.task.processors for each in made.queue.values())
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


class Ledger:
    """Which task holds how much of which GPU."""

    def __init__(self) -> None:
        self.of: dict[AttemptKey, tuple[TaskSize, tuple[int, ...]]] = {}

    def check(self, gpus: int) -> None:
        for gpu in range(gpus):
            sizes = [size for size, places in self.of.values() if gpu in places]
            whole = [size for size in sizes if size.gpus >= 1 or size.nodes > 1]
            assert len(sizes) == 1 or not whole, "a whole GPU is nobody else's"
            for size in sizes:
                alike = [each for each in sizes if each.tasks_per_gpu == size.tasks_per_gpu]
                assert len(alike) <= size.tasks_per_gpu
            assert sum(size.gpu_share for size in sizes) <= 1 + 1e-6


GPU_SIZES = st.builds(
    TaskSize,
    processors=st.integers(1, 2),
    gpus=st.sampled_from([0, 1, 2, 3, 0.5, 0.34, 1 / 3, 0.3, 0.25, 0.1]),
    gpu_type=st.sampled_from(["", "a100"]),
    nodes=st.sampled_from([1, 1, 1, 2]),
)


@given(
    st.integers(0, 4),
    st.lists(
        GPU_SIZES | st.tuples(st.sampled_from(["start", "end", "requeue", "take"]), st.integers(0, 99)),
        max_size=80,
    ),
)
def test_no_gpu_is_ever_held_by_more_than_may_share_it(
    gpus: int, actions: list[TaskSize | tuple[str, int]]
) -> None:
    made = Slots(8, MEMORY, 1e9, gpus=gpus, gpu_type="a100" if gpus % 2 else "")
    ledger = Ledger()
    for number, action in enumerate(actions):
        if isinstance(action, TaskSize):
            lease = Lease(AttemptKey(1, number, 1), "true", 0.0)
            leased = HeldTask(lease, BagContext(1, "/", "/", {}, action))
            if made.can_ever_hold(leased):
                made.add(leased)
            continue
        what, which = action
        if what == "start" and (held := made.start_next(0.0)):
            task = held.bag.task
            ledger.of[held.key] = (task, held.gpus)
            assert len(held.gpus) == (gpus if task.nodes > 1 else task.whole_gpus)
        elif what in ("end", "requeue") and made.running:
            key = list(made.running)[which % len(made.running)]
            (made.end if what == "end" else made.requeue)(key)
            del ledger.of[key]
        elif what == "take" and made.queue:
            made.take(list(made.queue)[which % len(made.queue)])
        ledger.check(gpus)
        assert all(-1e-9 <= free <= 1 for free in made.free_gpus)
    while made.queue or made.running:
        while made.start_next(0.0):
            pass
        made.end(next(iter(made.running)))
    assert made.free_gpus == (1.0,) * gpus


def test_what_waits_in_the_queue_has_its_gpus_already() -> None:
    made = Slots(4, MEMORY, 100.0, gpus=2)
    for number, size in enumerate((TaskSize(gpus=1), TaskSize(gpus=0.5))):
        made.add(HeldTask(Lease(AttemptKey(1, number, 1), "true", 0.0), BagContext(1, "/", "/", {}, size)))
    assert sorted(made.free_gpus) == [0.0, 0.5]


def test_each_running_task_has_its_own_processors() -> None:
    made = Slots(3, MEMORY, 100.0, binding=Binding(3, [((0,),), ((1,),), ((2,),)]))
    for number, bind in enumerate((True, False, True)):
        bag = BagContext(1, "/", "/", {}, bind=bind)
        made.add(HeldTask(Lease(AttemptKey(1, number, 1), "true", 0.0), bag))
    held = [each for _ in range(3) if (each := made.start_next(0.0))]
    assert [each.cpus for each in held] == [(0,), (), (1,)]
    made.requeue(held[0].key)
    again = made.start_next(0.0)
    assert again is not None
    assert again.cpus == (0,)


def among(task: int, most: int, bag: int = 1) -> HeldTask:
    return HeldTask(Lease(AttemptKey(bag, task, 1), "true", 0.0, among=most), BagContext(bag, "/", "/", {}))


def test_a_lease_waits_for_the_place_of_one_of_its_bag_and_keeps_no_processor_from_others() -> None:
    made = slots(4)
    for n in range(4):
        made.add(among(n, 1))
    assert start_all(made) == [0]
    assert (made.free_processors, len(made.queue)) == (3, 3)
    made.add(among(9, 0, bag=2))
    assert start_all(made) == [9]
    made.end(AttemptKey(2, 9, 1))
    assert start_all(made) == []
    assert made.take(AttemptKey(1, 1, 1)).key.task == 1
    made.end(AttemptKey(1, 0, 1))
    assert (made.free_processors, start_all(made), made.free_processors) == (3, [2], 3)
    made.requeue(AttemptKey(1, 2, 1))
    assert (start_all(made), [held.key.task for held in made.clear()]) == ([2], [3])


def test_a_lease_behind_one_that_is_taken_out_starts_if_its_own_limit_lets_it() -> None:
    """`max-running` became 1, then 2, while two ran; the lease of the first change is taken back."""
    made = slots(4)
    for task, most in enumerate((0, 0, 1, 2)):
        made.add(among(task, most))
    assert start_all(made) == [0, 1]
    made.end(AttemptKey(1, 0, 1))
    assert start_all(made) == []
    made.take(AttemptKey(1, 2, 1))
    assert start_all(made) == [3]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(1, 2), st.integers(0, 3)),
            st.tuples(st.sampled_from(["end", "take", "requeue"]), st.integers(0, 9), st.just(0)),
        ),
        max_size=40,
    )
)
@example([("add", 1, 0)] * 5 + [("add", 1, 1), ("add", 1, 2)] + [("end", 0, 0)] * 4 + [("take", 0, 0)])
def test_no_more_of_a_bag_start_than_their_leases_say(steps: list[tuple[str, int, int]]) -> None:
    made, limits = slots(5), {}
    for number, (what, which, most) in enumerate(steps):
        if what == "add":
            limits[AttemptKey(which, number, 1)] = most
            made.add(among(number, most, bag=which))
        elif held_keys := list(made.queue if what == "take" else made.running):
            getattr(made, what)(held_keys[which % len(held_keys)])
        before = set(made.running)
        while (started := made.start_next(0.0)) is not None:
            others = sum(key.bag == started.key.bag for key in before)
            assert not limits[started.key] or others < limits[started.key]
            before.add(started.key)
        for bag in {key.bag for key in made.queue}:
            first = next(limits[key] for key in made.queue if key.bag == bag)
            runs = sum(key.bag == bag for key in made.running)
            assert len(made.running) == 5 or runs >= first > 0, "it waits only where it has to"
    made.clear()
    for key in list(made.running):
        made.end(key)
    assert (made.free_processors, made.free_memory, not made.queue) == (5, MEMORY, True)


def test_a_slot_goes_on_with_the_bag_whose_process_is_warm_until_the_turn_of_another() -> None:
    """The process of bag 1 has waited since 0; a start of bag 2 would end it."""
    made, of_two = slots(1), AttemptKey(2, 0, 1)
    made.add(among(0, 0, bag=2))

    def next_one(now: float, since: float) -> int | None:
        started = made.start_next(now, lambda held: since if held.key.bag == 2 else None)
        if started is not None:
            made.end(started.key)
        return None if started is None else started.key.bag

    for n in range(10):
        assert next_one(n / 10, since=n / 10) is None, "its next call may be on its way"
        assert (made.free_processors, made.again_at) == (1, n / 10 + PAUSE)
        made.add(among(n, 0, bag=1))
        assert (next_one(n / 10, since=n / 10), made.free_processors) == (1, 0)
    made.add(among(90, 0, bag=1))
    assert next_one(TURN, since=TURN) == 2, "it has let others pass for long enough"
    assert of_two not in made.queue
    made.add(among(1, 0, bag=2))
    assert [next_one(TURN, since=TURN), next_one(TURN, since=TURN)] == [1, None]
    assert next_one(TURN + 1, since=TURN) == 2, "no call has come for a while"


def test_a_call_starts_on_the_processor_where_a_process_of_its_bag_waits() -> None:
    made = Slots(2, MEMORY, 100.0, binding=Binding(2, cores=(((0,),), ((1,),))))
    made.add(held(0))
    started = made.start_next(0.0, warm_on=lambda _held: [(0, 1), (1,)])
    assert started is not None
    assert started.cpus == (1,)
    made.add(held(1))
    other = made.start_next(0.0, warm_on=lambda _held: [(1,)])
    assert other is not None
    assert other.cpus == (0,), "the other one is taken"
