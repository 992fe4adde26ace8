"""What the daemon's decisions buy for 256 image tasks, beside the experiment (Silva et al. 2011, §4)."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.provisioning.presets import PREFERENCES
from adaptor.crafting.situation import SubmitRequest
from adaptor.model import Limits, Preference
from adaptor.runtimes.known import EarlierTasks
from adaptor_experiments.a2ha.bags import IMAGE, runtimes
from adaptor_experiments.a2ha.simulation import CloudRun
from adaptor_experiments.forecasts.site_run import CheckedSite, submitted

CLOUD = CheckedSite(
    tariff=Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=3600),
    processors=400,
    limits=Limits(max_pending_requests=1000, max_proc=256, max_tr=24 * 3600),
    pad=300.0,
    startup=285,
    idle_timeout=3600.0,
    initial_tr=3600.0,
    poll=5.0,
)
"""A site that grants every request at once, by the hour; 5 minutes are lost at the start (§4)."""


def requests(
    bag_runtimes: list[float],
    site: CheckedSite = CLOUD,
    *,
    prefer: Preference | None = None,
    deadline: float | None = None,
) -> tuple[list[SubmitRequest], float]:
    """All requests that the daemon's decisions make until the bag is done, and what it costs."""
    run = submitted(bag_runtimes, site, prefer=prefer, deadline=deadline, foresees=False)
    outcome = run.run([])
    assert outcome is not None
    made = [each.action for each in run.driver.log if isinstance(each.action, SubmitRequest)]
    return made, outcome.cost


@pytest.mark.parametrize("prefer", ["balanced", "cheap"])
def test_the_daemon_buys_as_the_experiment_does(prefer: Preference) -> None:
    """The world's clock counts whole seconds, and the daemon looks at every fifth."""
    bag = [float(round(each)) for each in runtimes(IMAGE, 1, 0)]
    published = CloudRun(bag, IMAGE.terms, PREFERENCES[prefer], bought="daemon").finish()
    made, cost = requests(bag, prefer=prefer)
    hosts = [each.crafted.request.p for each in made]
    assert hosts[0] == (1 if prefer == "balanced" else 3), "it begins with few"
    assert {each.crafted.request.tr for each in made} == {7200}, "one unit, and one in which to go on"
    assert abs(sum(hosts) - published.hosts) <= 0.15 * published.hosts
    assert cost <= 1.3 * published.units


def test_for_a_deadline_no_more_is_bought_than_it_needs() -> None:
    """10 hours of work: no cheaper than by as many hosts of an hour, of which each runs five tasks."""
    site = msgspec.structs.replace(CLOUD, initial_tr=600.0, poll=60.0)
    made, cost = requests([600.0] * 60, site, deadline=2.5 * 3600.0)
    assert min(each.crafted.request.tr for each in made) >= 3600
    assert cost <= 18


def test_a_request_for_a_near_deadline_lasts_as_long_as_the_unit_that_is_paid_for_it() -> None:
    """Else tasks that may be long do not start towards its end, although their slots are idle and paid."""
    site = msgspec.structs.replace(CLOUD, initial_tr=600.0, poll=60.0)
    made, _ = requests([400.0] * 30 + [1200.0], site, deadline=2400.0)
    assert min(each.crafted.request.tr for each in made) >= 3600


def test_a_request_of_whole_units_holds_a_task_that_is_as_long_as_earlier_ones() -> None:
    """No task starts in a shorter one, so pilot after pilot was paid and ended without a task."""
    run = submitted([1800.0] * 8, CLOUD, prefer="cheap", foresees=False)
    earlier = EarlierTasks(kind="fit", tasks=40, mean=1800.0, factor=2.0, low=600.0, high=8800.0)
    run.driver.broker.state.know_earlier(run.bag, {CLOUD.name: earlier})
    outcome = run.run([])
    assert outcome is not None
    assert outcome.done == 8
    first = next(each.action for each in run.driver.log if isinstance(each.action, SubmitRequest))
    assert first.crafted.request.tr == 3 * 3600
