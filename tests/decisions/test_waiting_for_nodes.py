"""A bag with a deadline waits for cheap idle nodes that come back, while its time allows.

All processors are idle for half an hour and busy for the next, and the daemon has watched that for days.
"""

from __future__ import annotations

import functools

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import PriceConfig, SiteConfig
from adaptor.crafting.situation import SubmitRequest, Withhold
from adaptor.daemon.sites import terms_of
from adaptor.daemon.treasury import costs_of
from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.decisions.snapshot import Snapshot
from adaptor.donation.idleness import IdleLearner, Idleness
from adaptor.scheduling.broker import Broker
from adaptor.units import Duration
from adaptor_simulation.driver import Decided, SimulatedDriver
from adaptor_simulation.scene.world import World
from tests.simulation.scene.scenes import LocalJobs, Scene, SceneBag, add_bag, spec

NODES = 8
HALF = 1800
"""Seconds for which the nodes are idle, and then busy."""
TASKS = 100
TASK = 240
NEEDED = TASKS * TASK / NODES
"""Seconds of all nodes."""
CHEAP = 0.1
"""Credits for an hour of a donated node; one of a formal request costs 1."""
BACK_AND_FORTH: LocalJobs = [(at, NODES, 1900, HALF) for at in range(HALF, 60_000, 2 * HALF)]
NEVER_AGAIN: LocalJobs = [(HALF + 600 * number, NODES, 610, 600) for number in range(90)]
"""Each job of local users comes as the one before it ends."""


class Played(msgspec.Struct, frozen=True):
    """What came of the bag."""

    log: list[Decided]
    credits: float
    end: float
    done: int

    @property
    def formal(self) -> list[float]:
        """When formal requests were made."""
        submits = [each for each in self.log if isinstance(each.action, SubmitRequest)]
        return [each.at for each in submits if not each.action.node]


@functools.cache
def watched(days: int = 10) -> Idleness:
    """What is learned of these nodes in some days."""
    learner = IdleLearner()
    for _ in range(days * 86400 // (2 * HALF)):
        learner.saw(0.0, HALF, taken=True, nodes=NODES)
        learner.watched(2 * HALF, NODES)
    return learner.idleness


def never_seen_to_begin() -> Idleness:
    """As much is known of how long nodes stay idle, and nothing of how often they become so."""
    return msgspec.structs.replace(watched(), begun=0)


def play(
    deadline: float,
    *,
    donated: float = CHEAP,
    jobs: LocalJobs = BACK_AND_FORTH,
    known: Idleness | None = None,
    **wishes: object,
) -> Played:
    donation = DonationConfig(mode="agent", useful_time=Duration(60))
    here = SiteConfig(
        backend="local",
        initial_tr=Duration(60),
        pad=Duration(10),
        donation=donation,
        price=PriceConfig(explicit=1.0, donated=donated),
    )
    wanted = spec(deadline=deadline, time=float(TASK), **wishes)
    bag = SceneBag(spec=wanted, tasks=TASKS, seconds=TASK - 3)
    scene = Scene(sites={"here": (here, NODES, jobs)}, bags=(bag,))
    simulated = scene.simulated()
    terms = {"here": terms_of(here, scene.limits("here"))}
    tariffs = {name: each.tariff for name, each in costs_of(scene.configs).items()}
    seen = {"here": SeenNodes(watched() if known is None else known)}
    driver = SimulatedDriver(simulated, Broker(terms), tariffs, seen=seen, decider=_without_forecasts)
    world = World(simulated, driver)
    add_bag(world, driver.broker, 1, bag)
    world.run(60_000)
    end = float(world.now)
    while driver.ledger.of_bag(1).reserved:  # until the last pilot has left and is charged
        world.go_on(world.now + 60)
    done = sum(each.state.value == "done" for each in world.ended)
    return Played(log=driver.log, credits=driver.ledger.of_bag(1).used / 1e6, end=end, done=done)


def _without_forecasts(snapshot: Snapshot) -> Decision:
    """They are most of the work, and nobody looks at them."""
    return decide(msgspec.structs.replace(snapshot, ahead=()))


def test_far_from_its_deadline_it_waits_for_nodes_instead_of_buying() -> None:
    before, now = play(18_000.0, known=never_seen_to_begin()), play(18_000.0)
    assert before.formal
    assert now.formal == []
    assert now.done == before.done == TASKS
    assert now.end <= 18_000
    assert now.credits == pytest.approx(CHEAP * NEEDED * NODES / 3600, rel=0.15)
    assert now.credits <= before.credits / 4
    told = [each.action.reason for each in now.log if isinstance(each.action, Withhold)]
    assert any("tasks at here (donated later)" in reason for reason in told), "while none is there"


def test_near_its_deadline_it_buys_as_before() -> None:
    near = 2.5 * NEEDED
    before, now = play(near, known=never_seen_to_begin()), play(near)
    assert now.formal
    assert now.formal[0] <= HALF
    assert (now.formal, now.credits, now.end) == (before.formal, before.credits, before.end)
    assert now.end <= near


def test_it_buys_in_time_what_does_not_come() -> None:
    """What it has learned holds no more: from the first job on, no node becomes idle again."""
    found = play(18_000.0, jobs=NEVER_AGAIN)
    assert found.done == TASKS
    assert found.end <= 18_000
    assert min(found.formal) > 3 * HALF, "it has waited"


@pytest.mark.parametrize("wishes", [{"prefer": "fast"}, {"prefer": "balanced"}])
def test_only_who_wants_it_cheap_waits(wishes: dict[str, str]) -> None:
    assert play(18_000.0, **wishes).formal


def test_at_equal_prices_nobody_waits() -> None:
    with_, without = (play(18_000.0, donated=1.0, known=known) for known in (None, never_seen_to_begin()))
    assert with_.log == without.log
    assert with_.formal
