"""When a bag will be done: from the first second, and with what has finished, runs and was cut."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.bag_spec import BagSpec
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.situation import SiteRules, SiteState
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.forecast import forecast
from adaptor.forecast.known import KnownBag, KnownPilot, KnownSite
from adaptor.forecast.other_bags import OtherBags
from adaptor.model import Estimate, Limits, PendingJob, QueueState, RunningJob
from adaptor.resources import Node
from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.learner import RuntimeLearner
from adaptor.runtimes.possible import RuntimeKnowledge
from tests.examples import examples

RULES = SiteRules(limits=Limits(max_pending_requests=4, max_proc=16, max_tr=4 * 3600), pad=30.0)
LEARNER = RuntimeLearner(initial=600.0, factor=2, longest=RULES.longest_task)
FREE = QueueState(now=0.0, processors=16)


def site(queue: QueueState | None = FREE, heuristic: str = "adaptive", **changes: Any) -> KnownSite:
    view = SiteState(now=0.0, name="site", rules=RULES, heuristic=heuristic, queue=queue, poll=0.0)
    return msgspec.structs.replace(KnownSite(view=view, learner=LEARNER), **changes)


def facts(tasks: int = 160, finished: int = 0, **spec: Any) -> BagFacts:
    return BagFacts(
        id=1,
        spec=BagSpec(name="bag", cwd="/", output="/", environment={}, **spec),
        tasks=tasks + finished,
        waiting=tasks,
        known=KnownRuntimes(finished=finished),
        attempts={},
        by_pilot={},
        learned={},
        runtimes=(),
        every=1,
    )


def known(
    waiting: int = 160, at: KnownSite | None = None, spec: Mapping[str, Any] = {}, **runtimes: Any
) -> KnownBag:
    fields: dict[str, Any] = {"guess": 600.0, "surety": 0.2, "tasks": waiting, **runtimes}
    finished = fields.get("finished", ())
    seen = KnownRuntimes(
        finished=len(finished), total=math.fsum(finished), longest=max(finished, default=0.0)
    )
    at = at or site()
    return KnownBag(
        now=0.0,
        bag=facts(waiting, len(finished), **spec),
        runtimes=RuntimeKnowledge(**fields),
        sites=[msgspec.structs.replace(at, learner=msgspec.structs.replace(at.learner, seen=seen))],
    )


def changed(at: KnownBag, **changes: Any) -> KnownBag:
    """The same with other facts about its bag."""
    return msgspec.structs.replace(at, bag=msgspec.structs.replace(at.bag, **changes))


def with_running(bag: KnownBag, running: int) -> KnownBag:
    seen = msgspec.structs.replace(bag.bag.known, running=running)
    return changed(bag, known=seen, tasks=bag.bag.tasks + running)


def end_of(bag: KnownBag) -> Estimate:
    found = forecast(bag).end
    assert found is not None
    assert found.low <= found.value <= found.high
    return found


def alike(count: int, mean: float = 600.0, spread: float = 0.1) -> list[float]:
    draw = random.Random(1)
    return [mean * math.exp(draw.gauss(0.0, spread)) for _ in range(count)]


def test_before_anything_runs_the_hint_and_the_slots_say_when() -> None:
    found = end_of(known())
    assert found.holds(160 * 600 / 16)
    assert 0.6 * 6000 < found.value < 1.8 * 6000


def test_a_vague_guess_makes_a_wide_interval() -> None:
    sure, vague = end_of(known()), end_of(known(surety=1.5))
    assert vague.high - vague.low > 2 * (sure.high - sure.low)


def test_what_has_finished_narrows_the_interval() -> None:
    before, after = end_of(known()), end_of(known(finished=alike(100)))
    assert after.high - after.low < 0.7 * (before.high - before.low)
    assert 0.9 * 6000 < after.value < 1.35 * 6000


def test_a_full_queue_is_waited_for() -> None:
    full = QueueState(now=0.0, processors=16, running=(RunningJob("other", 16, 36_000.0),))
    busy = site(full, run_shares=(1.0,))
    assert end_of(known(at=busy, finished=alike(100))).value > 36_000


def test_bags_that_take_turns_take_time() -> None:
    alone = known(finished=alike(100))
    shared = changed(alone, others=OtherBags(older=(160,)))
    assert end_of(shared).value > 1.5 * end_of(alone).value


def test_running_tasks_count_with_what_is_left_of_them() -> None:
    pilot = KnownPilot(
        job="1", p=16, tr=4 * 3600.0, slots=16, started=-500.0, predicted=None, elapsed=(500.0,) * 16
    )
    base = known(0, site(pilots=(pilot,)), finished=alike(200), running=[500.0] * 16)
    bag = with_running(base, 16)
    found = end_of(bag)
    assert found.low > 0
    assert found.value < 300
    assert found.high < 3000


@pytest.mark.parametrize(("running", "queued"), [(16, 0), (64, 0), (16, 184), (64, 400)])
def test_narrow_pilots_do_no_more_than_one_as_wide(running: int, queued: int) -> None:
    """Slots that count as one in a wide pilot are those of several narrow ones, and queued ones that find no
    processor make it no sooner."""
    limits = Limits(max_pending_requests=4, max_proc=running, max_tr=4 * 3600, max_pilots=500)
    pilots = tuple(
        KnownPilot(
            job=f"{number}", p=1, tr=4 * 3600.0, slots=1, started=-1000.0, predicted=None, elapsed=(300.0,)
        )
        for number in range(running)
    )
    waiting = tuple(
        KnownPilot(job=f"w{number}", p=1, tr=1200.0, slots=1, started=None, predicted=None)
        for number in range(queued)
    )
    queue = QueueState(
        now=0.0,
        processors=running,
        running=tuple(RunningJob(pilot.job, 1, 13_400.0) for pilot in pilots),
        pending=tuple(PendingJob(pilot.job, 1, 1200.0) for pilot in waiting),
    )
    at = site(queue, "elastic", pilots=pilots + waiting)
    rules = msgspec.structs.replace(RULES, limits=limits)
    at = msgspec.structs.replace(at, view=msgspec.structs.replace(at.view, rules=rules))
    bag = known(10 * running, at, finished=alike(100), running=[300.0] * running)
    assert 0.95 * 6300 < end_of(with_running(bag, running)).value < 1.15 * 6300


def test_tasks_that_have_run_far_beyond_all_others_are_of_another_kind() -> None:
    pilot = KnownPilot(
        job="1", p=16, tr=4 * 3600.0, slots=16, started=-3000.0, predicted=None, elapsed=(3000.0,) * 4
    )
    base = known(0, site(pilots=(pilot,)), finished=alike(200), running=[3000.0] * 4)
    assert end_of(with_running(base, 4)).high > 3000


def test_a_task_that_was_cut_needs_a_longer_request() -> None:
    bag = changed(known(1, finished=alike(100), running=[3000.0]), again=(3000.0,))
    assert end_of(bag).value > 3000


def test_a_sorted_file_is_seen_and_not_taken_for_a_sample() -> None:
    runtimes = [10.0 + each for each in range(100)]
    blind = known(900, finished=runtimes, tasks=1000)
    seeing = known(900, finished=runtimes, places=list(range(100)), tasks=1000)
    true = sum(10.0 + each for each in range(100, 1000)) / 16
    assert end_of(blind).high < true
    assert end_of(seeing).low < 1.1 * true < end_of(seeing).high


def test_without_a_place_no_end_is_seen_and_an_ended_bag_ends_now() -> None:
    assert forecast(known(at=site(None))).end is None
    assert forecast(known(at=site(open=False))).end is None
    assert forecast(known(0)).end == Estimate(0.0, 0.0, 0.0)


def test_too_little_is_known_until_a_task_finishes_or_somebody_says_what_one_takes() -> None:
    busy = site(QueueState(now=0.0, processors=16, running=(RunningJob("1", 8, 600.0),)))
    said, assumed = forecast(known(at=busy)), forecast(known(at=busy, surety=1.5))
    one = forecast(known(at=busy, surety=1.5, finished=[600.0]))
    assert [found.blind for found in (said, assumed, one)] == [False, True, False]


def test_the_same_bag_has_the_same_forecast() -> None:
    assert forecast(known(finished=alike(30))) == forecast(known(finished=alike(30)))


@examples(10)
@given(
    waiting=st.integers(1, 100_000),
    finished=st.lists(st.floats(0.0, 1e5), max_size=30),
    running=st.lists(st.floats(0.0, 1e5), max_size=30),
    guess=st.floats(1e-3, 1e6),
)
def test_any_bag_has_an_end_that_is_not_past(
    waiting: int, finished: list[float], running: list[float], guess: float
) -> None:
    found = forecast(known(waiting, finished=finished, running=running, guess=guess)).end
    if found is not None:
        assert 0.0 <= found.low <= found.value <= found.high


@pytest.mark.parametrize("heuristic", sorted(HEURISTICS))
def test_every_heuristic_crafts_the_requests_to_come(heuristic: str) -> None:
    assert end_of(known(at=site(heuristic=heuristic), finished=alike(50))).value > 3000


def test_a_bag_that_runs_few_tasks_at_the_same_time_takes_longer() -> None:
    bag, few, many = (known(160, spec={"max_running": most}, finished=alike(100)) for most in (None, 4, 1000))
    assert end_of(few).value > 3 * end_of(bag).value
    assert end_of(few).holds(1.05 * 160 * 600 / 4)
    assert end_of(many) == end_of(bag)


def test_tasks_of_which_few_fit_on_a_node_get_few_slots() -> None:
    """Of four nodes with four processors each holds one task of three."""
    nodes = tuple(Node(name=f"n{each}", processors=4) for each in range(4))
    wide = {"cpus": 3}
    shaped = site(QueueState(now=0.0, processors=16, nodes=nodes))
    few, more = (end_of(known(at=each, spec=wide, finished=alike(100))) for each in (shaped, site()))
    assert few.value > 1.1 * more.value
    assert few.holds(160 * 600 / 4)


def test_no_end_is_before_the_end_of_a_reservation_for_which_every_pilot_waits() -> None:
    """Jobs of others may end at any time; a reservation does not."""
    waits = KnownPilot(job="7", p=16, tr=3600.0, slots=16, started=None, predicted=None)
    low = {}
    for blocks in ("123", "reservation maintenance"):
        queue = QueueState(
            now=0.0,
            processors=16,
            running=(RunningJob(blocks, 16, 36_000.0),),
            pending=(PendingJob("7", 16, 3600.0),),
        )
        low[blocks] = end_of(known(16, site(queue, pilots=(waits,)), surety=1.5)).low
    assert low["123"] < 36_000 <= low["reservation maintenance"]


def test_an_interval_reaches_the_end_as_planned_where_every_pilot_waits() -> None:
    """Waits of earlier pilots, which were nearly nothing, do not promise that this one starts as soon."""
    held = RunningJob("9", 16, 10_000.0)
    waits = PendingJob("1", 16, 3600.0, 10_000.0)
    queue = QueueState(now=0.0, processors=16, running=(held,), pending=(waits,))
    pilot = KnownPilot(job="1", p=16, tr=3600.0, slots=16, started=None, predicted=10_000.0)
    at = site(queue, pilots=(pilot,), run_shares=(0.01,))
    at.view.waits.shares = (0.01,) * 20
    found = end_of(known(16, at))
    assert found.low < 10_000 < found.high


def test_pilots_of_other_bags_hold_their_processors_as_long_as_those_need_them() -> None:
    """Whether they run or wait: limits of days say little of when our own pilots end."""
    day = 86_400.0
    queue = QueueState(
        now=0.0,
        processors=16,
        running=(RunningJob("1", 16, day),),
        pending=tuple(PendingJob(f"{number}", 16, day, day * number) for number in range(2, 5)),
    )
    needed = Estimate(500.0, 600.0, 900.0)
    ours = site(queue, beside={f"{number}": needed for number in range(1, 5)})
    behind = end_of(known(16, ours, finished=alike(100)))
    alone = end_of(known(16, finished=alike(100)))
    strange = end_of(known(16, site(queue), finished=alike(100)))
    assert 0.8 * needed.value < behind.value - alone.value < 1.2 * needed.value + 60
    assert alone.high + needed.low < behind.high < alone.high + 2 * needed.high
    assert strange.value > 5 * behind.value
