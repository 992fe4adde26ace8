"""How a site says that its idle nodes are donated, and what is wrong with it."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.donation import DonationConfig
from adaptor.config.loading import load_config, parse_config
from adaptor.donation.situation import DonationRules, Hours
from adaptor.errors import ConfigError

SITE = "sites:\n  hpc:\n    backend: slurm\n"


def donation(text: str, site: str = SITE) -> DonationConfig:
    found = parse_config(f"{site}    donation: {text}\n", "f").sites["hpc"].donation
    assert found is not None
    return found


def test_nothing_is_used_unless_a_site_says_so() -> None:
    assert parse_config(SITE, "f").sites["hpc"].donation is None
    assert load_config(None).sites["local"].donation is None


def test_all_that_can_be_said_of_jobs_that_yield() -> None:
    found = donation(
        "{mode: preemptible, partition: scavenger, account: free, qos: low, extra_args: [--nice=100], "
        "choose: all, "
        "max_nodes: 8, reserve_nodes: 2, useful_time: 5m, max_tr: 2h, hours: ['19:00-07:30', 12:00-13:00], "
        "fit: 0.7, last_fit: 1, patience: 5}"
    )
    assert (found.partition, found.account, found.qos) == ("scavenger", "free", "low")
    assert found.extra_args == ("--nice=100",)
    assert found.max_tr == 7200
    assert found.rules() == DonationRules(
        choose="all",
        max_nodes=8,
        reserve_nodes=2,
        useful_time=300.0,
        hours=(Hours(68400.0, 27000.0), Hours(43200.0, 46800.0)),
        fit=0.7,
        last_fit=1.0,
        patience=5,
    )


def test_all_that_can_be_said_of_agents() -> None:
    found = donation(
        "{mode: agent, launcher: [ssh, '{node}'], runtime_directory: /run/adaptor, reclaim_timeout: 3s}"
    )
    assert (found.launcher, found.runtime_directory) == (("ssh", "{node}"), "/run/adaptor")
    assert found.reclaim_timeout == 3
    assert donation("{mode: agent}").rules() == DonationRules()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "sites.hpc.donation: Object missing required field `mode`"),
        ("{mode: lend}", "sites.hpc.donation.mode: Invalid enum value 'lend'"),
        (
            "{mode: agent, max_node: 3}",
            "sites.hpc.donation.max_node: unknown key (did you mean `max_nodes`?)",
        ),
        (
            "{mode: preemptible}",
            "donation: give partition, qos or extra_args: they say which jobs the scheduler preempts",
        ),
        ("{mode: preemptible, account: a}", "donation: give partition, qos or extra_args"),
        ("{mode: preemptible, qos: low, launcher: [ssh]}", "launcher: is not used with mode: preemptible"),
        (
            "{mode: preemptible, qos: low, runtime_directory: /run/a}",
            "runtime_directory: is not used with mode: preemptible",
        ),
        (
            "{mode: preemptible, qos: low, reclaim_timeout: 3}",
            "reclaim_timeout: is not used with mode: preemptible",
        ),
        ("{mode: agent, partition: scavenger}", "donation.partition: is not used with mode: agent"),
        ("{mode: agent, account: free}", "donation.account: is not used with mode: agent"),
        ("{mode: agent, qos: low}", "donation.qos: is not used with mode: agent"),
        ("{mode: agent, extra_args: [-n]}", "donation.extra_args: is not used with mode: agent"),
        (
            "{mode: agent, launcher: [ssh, node]}",
            "launcher: contains no {node}, which stands",
        ),
        ("{mode: agent, runtime_directory: tmp/a}", "runtime_directory: 'tmp/a' is not an absolute path"),
        ("{mode: agent, runtime_directory: /}", "runtime_directory: '/' is not an absolute path"),
        ("{mode: agent, runtime_directory: /tmp/../a}", "'/tmp/../a' is not an absolute path"),
        ("{mode: agent, runtime_directory: '/tmp/$(id)'}", "'/tmp/$(id)' is not an absolute path"),
        (
            "{mode: agent, max_nodes: 0}",
            "donation.max_nodes: must be more than 0 and at most",
        ),
        ("{mode: agent, max_nodes: 1.5}", "donation.max_nodes: needs a whole number, not a fraction"),
        ("{mode: agent, reserve_nodes: -1}", "donation.reserve_nodes: must be from 0 to 1000000000, not -1"),
        ("{mode: agent, max_tr: 0}", "donation.max_tr: must be 1s or more, not 0"),
        (
            "{mode: agent, max_tr: 30}",
            "donation.max_tr: 30 s leaves no time for a task: the site's pad takes",
        ),
        ("{mode: agent, max_tr: soon}", "donation.max_tr: 'soon' is not a duration"),
        ("{mode: agent, reclaim_timeout: 0}", "donation.reclaim_timeout: must be 1s or more, not 0"),
        (
            "{mode: agent, patience: 0}",
            "donation.patience: must be more than 0 and at most",
        ),
        ("{mode: agent, fit: 0}", "donation.fit: must be more than 0 and at most 1, not 0"),
        ("{mode: agent, fit: 50}", "donation.fit: must be more than 0 and at most 1, not 50"),
        ("{mode: agent, last_fit: .nan}", "donation.last_fit: must be more than 0"),
        ("{mode: agent, hours: 19:00-07:30}", "donation.hours: needs a list, not text"),
        (
            "{mode: agent, hours: [evening]}",
            "donation.hours[0]: 'evening' is not a part of the day; write for",
        ),
        ("{mode: agent, hours: [8:00-9:00]}", "donation.hours[0]: '8:00-9:00' is not a part of the day"),
        (
            "{mode: agent, hours: [01:00-02:00, 24:00-02:00]}",
            "donation.hours[1]: '24:00-02:00' is not a part",
        ),
        ("{mode: agent, hours: [01:00-24:30]}", "donation.hours[0]: '01:00-24:30' ends after midnight"),
        ("{mode: agent, hours: [09:00-09:00]}", "donation.hours[0]: '09:00-09:00' ends when it begins"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"^f:4: .*{re.escape(problem)}"):
        donation(text)


def test_the_line_is_that_of_the_key() -> None:
    text = f"{SITE}    donation:\n      mode: agent\n      hours:\n        - 01:00-02:00\n        - noon\n"
    with pytest.raises(ConfigError, match=r"^f:8: sites\.hpc\.donation\.hours\[1\]: 'noon'"):
        parse_config(text, "f")


def test_a_single_machine_lends_nothing() -> None:
    with pytest.raises(ConfigError, match=r"sites\.hpc\.donation: backend local has no donation"):
        donation("{mode: agent}", SITE.replace("slurm", "local"))


@given(st.integers(0, 24 * 60 - 1), st.integers(0, 24 * 60))
def test_parts_of_the_day_are_seconds_from_midnight(begin: int, end: int) -> None:
    if begin == end:
        return
    part = f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}"
    (hours,) = DonationConfig(mode="agent", hours=(part,)).rules().hours
    assert (hours.begin, hours.end) == (60.0 * begin, 60.0 * end)
    assert not math.isinf(hours.end)


def test_agents_are_a_package_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.config.donation.installed", lambda _group: {})
    assert donation("{mode: preemptible, qos: low}").grace == 3.0
    wanted = (
        "donation.mode: agent needs request-adaptor-donation-agents: in a clone of the adaptor, python -m"
    )
    with pytest.raises(ConfigError, match=re.escape(wanted)):
        donation("{mode: agent}")
