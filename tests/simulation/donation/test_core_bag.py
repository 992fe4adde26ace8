"""A bag in the scheduling core: rules that the kernels do not know, in whole runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptor.donation.hours import closes
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import DonationRules, Hours
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation import driver
from adaptor.simulation.donation import kernels as k
from adaptor.simulation.donation.core_bag import CoreBag
from adaptor.simulation.donation.processors import Processors
from adaptor.simulation.errors import ReplayError
from tests.simulation.donation.test_driver import one, terms_of
from tests.simulation.donation.test_kernel_bag import jobs
from tests.simulation.trace_strategies import PROCESSORS, jobs_from

HOURS = (Hours(600.0, 1200.0),)


class WatchedBag(CoreBag):
    """After each step of the donation, its rules hold."""

    def use_nodes(self) -> None:
        super().use_nodes()
        rules, lot = self._rules, self._place.lot
        idle = int(((lot[k.OWNER] < 0) & (lot[k.USED] < 0)).sum())
        assert rules.max_nodes is None or len(self._place.used) <= rules.max_nodes
        assert not len(self._place.used) or idle >= rules.reserve_nodes
        now = float(self._place.cluster.now)
        assert not len(self._place.used) or closes(rules.hours, now, 0.0) > now


rules = st.builds(
    DonationRules,
    choose=st.sampled_from(["likely", "all"]),
    max_nodes=st.none() | st.integers(1, 8),
    reserve_nodes=st.integers(0, 7),
    hours=st.sampled_from([(), HOURS]),
    useful_time=st.sampled_from([0.0, 60.0]),
)


@given(
    st.lists(jobs(200), max_size=20),
    st.lists(st.integers(1, 199), min_size=1, max_size=20),
    rules,
    st.sampled_from(["transparent", "mixed"]),
)
@settings(max_examples=100)
def test_max_nodes_reserve_and_hours_hold_at_every_instant(rows, runtimes, rules, allocation):
    place = Processors(Simulation(jobs_from(rows), PROCESSORS, "conservative"), IdleLearner())
    place.cluster.advance(0)
    place.watch()
    result = driver.run_donation(place, np.array(runtimes), terms_of(), rules, allocation, WatchedBag)
    assert result.donated <= sum(runtimes)
    assert result.donated + result.lost <= result.used


def test_rules_that_the_kernels_do_not_know_are_the_cores():
    assert one([10] * 6, max_nodes=2).turnaround == 30
    assert one([10] * 6, reserve_nodes=6).turnaround == 30
    assert one([10] * 8, hours=HOURS, useful_time=0.0).turnaround == 610


def test_the_reserve_is_given_back_when_a_job_takes_other_nodes():
    result = one([10] * 4, [(5, 4, 30, 30)], reserve_nodes=4)
    assert result.lost == 20, "four processors are idle after the job has started, and all are in reserve"


def test_rules_that_leave_no_node_are_refused_at_last(monkeypatch):
    monkeypatch.setattr(driver, "_NO_HOPE", 86400)
    with pytest.raises(ReplayError, match="leave no node"):
        one([5], reserve_nodes=PROCESSORS)
