"""What is told of tasks under which workers die."""

from __future__ import annotations

import msgspec

from adaptor import api
from adaptor.api import TaskView
from adaptor.journal.queries import answer
from adaptor.protocol.messages import AttemptKey, Report
from adaptor.reports import JobState
from tests.daemon.budgeted_site import steps
from tests.daemon.fake_site import FakeSite
from tests.daemon.test_core import hear, hello


def die_in_a_pilot(site: FakeSite, number: int) -> None:
    """A pilot starts and runs what there is; then its node fails."""
    steps(site)
    tag = site.backend.orders[-1].tag
    site.backend.say(tag, JobState.RUNNING)
    steps(site)
    told = msgspec.structs.replace(hello(), pilot=number)
    hear(
        site, told, Report(free_processors=2, free_memory=1 << 30), Report(started=[AttemptKey(1, 0, number)])
    )
    site.backend.say(tag, JobState.NODE_FAILED)
    steps(site)


def result(site: FakeSite) -> TaskView:
    told = answer(site.journal.connection, api.GetTasks(1), 0.0)
    return told[0]


def test_results_and_why_say_that_and_where_workers_died(site: FakeSite) -> None:
    site.submit_bag(1)
    die_in_a_pilot(site, 1)
    assert site.told("suspects") == [
        "its worker on node n died (node_failed) while it ran task 0 of bag 1: "
        "run last from now on, and alone after a second loss"
    ]
    assert result(site).state == "waiting"
    die_in_a_pilot(site, 2)
    die_in_a_pilot(site, 3)
    assert site.told("suspects")[2] == (
        "its worker on node n died (node_failed) while it ran task 0 of bag 1: not tried again"
    )
    assert result(site).state == "failed"
    assert result(site).error == (
        "its worker died under it 3 times (last: node n, pilot 3 node_failed): not tried again; "
        "adaptor retry 1 tries it again, a larger max-lost more often"
    )
    assert result(site).retries == 0


def test_innocent_tasks_do_not_wait_for_the_processors_beside_a_suspect(site: FakeSite) -> None:
    site.submit_bag(1)
    die_in_a_pilot(site, 1)
    die_in_a_pilot(site, 2)
    steps(site)
    site.backend.say(site.backend.orders[-1].tag, JobState.RUNNING)
    steps(site)
    free = Report(free_processors=2, free_memory=1 << 30)
    hear(site, msgspec.structs.replace(hello(), pilot=3), free, Report(started=[AttemptKey(1, 0, 3)]))
    asked = len(site.backend.orders)
    site.submit_bag(2)  # one may follow the suspect
    steps(site)
    assert site.state.core.broker.state.bags[2].waiting, "nothing is put beside the suspect"
    assert len(site.backend.orders) == asked + 1
