"""The example of 2008, Fig. 1."""

from __future__ import annotations

from adaptor_experiments.a2ha.figures import FIVE_MINUTES, EqualTasks


def test_what_the_paper_says_of_its_example():
    """The least is 25 hours; with them 25 hosts are the fastest; one host for each task costs 300."""
    charged = {hosts: FIVE_MINUTES.charged(hosts) for hosts in range(1, 301)}
    assert min(charged.values()) == charged[25] == 25
    assert max(FIVE_MINUTES.speedup(hosts) for hosts, hours in charged.items() if hours == 25) == 25
    assert (charged[300], FIVE_MINUTES.speedup(300)) == (300, 300)


def test_more_hosts_cost_more_in_proportion():
    assert all(FIVE_MINUTES.charged(hosts) == hosts for hosts in range(25, 301))


def test_a_host_that_runs_one_task_more_may_begin_another_unit():
    tasks = EqualTasks(5, 1800.0)
    assert tasks.charged(2) == 2 + 1
    assert tasks.speedup(2) == 5 / 3
