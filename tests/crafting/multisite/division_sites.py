"""Short ways to write down what a division sees, and random ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st

from adaptor.crafting.multisite.waits import WaitLearner
from adaptor.crafting.places import Place, places_of
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState, TaskGroup
from adaptor.model import Limits, PendingJob, QueueState, RunningJob
from adaptor.resources import TaskSize
from tests.crafting.planner_views import views

NOW = 1000.0


def standing(view: SiteState, *, closed: str = "", lost: bool = False) -> list[Place]:
    """The places of a site as the division sees them."""
    view = msgspec.structs.replace(view, closed=closed or "silent" * lost)
    return places_of(view.heard_of() if lost else view)


def site(
    processors: int = 16,
    *,
    busy_for: float = 0,
    pilots: tuple[PilotView, ...] = (),
    requests: int = 4,
    max_proc: int = 16,
    max_tr: int = 3600,
    pad: float = 0.0,
    heuristic: str = "adaptive",
    pending: tuple[PendingJob, ...] = (),
    waits: WaitLearner | None = None,
    read: bool = True,
    closed: str = "",
    lost: bool = False,
) -> list[Place]:
    """A site of which all processors are busy for so many seconds, and free from then on."""
    running = (RunningJob("local", processors, NOW + busy_for),) if busy_for else ()
    queue = QueueState(now=NOW, processors=processors, running=running, pending=pending)
    limits = Limits(max_pending_requests=requests, max_proc=max_proc, max_tr=max_tr)
    view = SiteState(
        now=NOW,
        queue=queue if read else None,
        rules=SiteRules(limits=limits, pad=pad),
        heuristic=heuristic,
        requests=pilots,
        waits=waits or WaitLearner(),
    )
    return standing(view, closed=closed, lost=lost)


def with_waits(places: list[Place], waits: WaitLearner) -> list[Place]:
    """The site with other experience of its waits."""
    site = msgspec.structs.replace(places[0].site, waits=waits)
    return [msgspec.structs.replace(place, site=site) for place in places]


def bag(waiting: int, runtime: float | Mapping[str, float] = 60.0, *sites: str, cpus: int = 1) -> TaskGroup:
    """Tasks for `near` and `far`, or for these sites."""
    at = dict.fromkeys(sites or ("near", "far"), runtime) if isinstance(runtime, (int, float)) else runtime
    return TaskGroup(
        waiting,
        {
            name: Demand(waiting=waiting, runtime=float(seconds), task=TaskSize(processors=cpus))
            for name, seconds in at.items()
        },
    )


def of_bag(group: TaskGroup, number: int) -> TaskGroup:
    """The tasks as those of a bag with pilots of its own."""
    return TaskGroup(
        group.waiting,
        {name: msgspec.structs.replace(demand, bag=number) for name, demand in group.at.items()},
        group.held,
    )


@st.composite
def situations(draw: st.DrawFn, sites: int = 3) -> tuple[dict[str, list[Place]], tuple[TaskGroup, ...]]:
    """Sites of any shape and mood, and tasks that may run at some of them."""
    names = [f"site{number}" for number in range(draw(st.integers(1, sites)))]
    found = {}
    for number, name in enumerate(names):
        view = draw(views().filter(lambda view: view.now == NOW))
        pilots = tuple(
            msgspec.structs.replace(
                pilot, id=pilot.id * sites + number,
                predicted_start=draw(st.one_of(st.none(), st.integers(-1000, 60).map(view.now.__add__))),
            )
            for pilot in view.requests
        )  # fmt: skip
        view = msgspec.structs.replace(view, requests=pilots, demands=())
        mood: dict[str, Any] = draw(st.sampled_from([{}, {}, {}, {"closed": "it fails"}, {"lost": True}]))
        found[name] = standing(view, **mood)
    groups = tuple(_group(draw, names, cpus) for cpus in range(1, 1 + draw(st.integers(1, 2))))
    return found, groups


def _group(draw: st.DrawFn, names: list[str], cpus: int) -> TaskGroup:
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    waiting = draw(st.integers(0, 200))
    held = {name: draw(st.integers(0, 5)) for name in chosen}
    return TaskGroup(
        waiting,
        {
            name: Demand(
                waiting=waiting, running=sum(held.values()), runtime=draw(st.floats(0.5, 40)),
                task=TaskSize(processors=cpus),
            )
            for name in chosen
        },
        held,
    )  # fmt: skip
