"""A site as users see it: the processors that its requests may hold, and those that they hold."""

from __future__ import annotations

import asyncio

import msgspec

from adaptor.daemon.client.site_views import site_view
from adaptor.daemon.step import step
from adaptor.model import QueueState
from adaptor.reports import JobState
from adaptor.resources import Node
from tests.daemon.fake_site import FakeSite


def test_processors_on_nodes_that_take_no_more_jobs_count_while_pilots_hold_them(site: FakeSite) -> None:
    site.submit_bag(4)
    asyncio.run(step(site.state))
    for pilot in site.state.pilots.values():
        site.backend.say(pilot.tag, JobState.RUNNING, nodes=("b",))
    asyncio.run(step(site.state))
    memory = site.state.memory
    nodes = tuple(Node(name=name, processors=4) for name in "ab")
    whole = QueueState(now=0.0, processors=8, nodes=nodes)
    drained = msgspec.structs.replace(
        whole, processors=4, nodes=(nodes[0], msgspec.structs.replace(nodes[1], in_service=False))
    )
    for queue in (whole, drained):
        memory.read(queue)
        view = site_view(site.state)
        assert (view.held, view.processors) == (4, 8)
    for pilot in memory.requests:
        memory.change(pilot, nodes=("a",))
    assert site_view(site.state).processors == 4
