"""What the operator of a login node allows: a configuration within it, or a refusal that names both lines."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.donation import minutes_of
from adaptor.config.loading import BUILT_IN, load_config, parse_config, read_policy
from adaptor.config.policy import Policy, capped, policy_of
from adaptor.config.schema import SiteConfig, sites_of
from adaptor.errors import ConfigError
from adaptor.model import Limits
from tests.fuzzing import damaged, fuzz, survives

POLICY = """\
poll_interval: 2m
limits:
  max_pending_requests: 8
  max_proc: 512
max_submissions: 30/h
max_withdrawals: 10/h
donation:
  max_nodes: 16
  reserve_nodes: 2
  hours: ["19:00-07:00", "12:00-13:00"]
"""


def policy(folder: Path, text: str = POLICY) -> Policy:
    path = folder / "policy.yaml"
    path.write_text(text, "utf-8", "surrogatepass")
    path.chmod(0o644)
    return read_policy(path, os.getuid())


def site(folder: Path, lines: str, text: str = POLICY) -> SiteConfig:
    whole = f"sites:\n  hpc:\n    backend: slurm\n    {lines}\n"
    return parse_config(whole, "c.yaml", lambda: policy(folder, text)).sites["hpc"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("poll_interval: 15s", "4: sites.hpc.poll_interval: 15s is beyond .*, at least 2m .*policy.yaml:1"),
        ("limits: {max_proc: 513}", "4: sites.hpc.limits.max_proc: 513 .*, at most 512 .*policy.yaml:4"),
        ("partitions: {a: {}, b: {limits: {max_pending_requests: 9}}}",
         "4: sites.hpc.partitions.b.limits.max_pending_requests: 9 .*, at most 8 .*policy.yaml:3"),
        ("max_submissions: 1/m", "4: sites.hpc.max_submissions: 60/h .*, at most 30/h .*policy.yaml:5"),
        ("max_withdrawals: 11", "4: sites.hpc.max_withdrawals: 11/h .*, at most 10/h .*policy.yaml:6"),
        ("donation: {mode: preemptible, qos: low, max_nodes: 17}",
         "4: sites.hpc.donation.max_nodes: 17 .*, at most 16 .*policy.yaml:8"),
        ("donation: {mode: preemptible, qos: low, max_nodes: null}",
         "donation.max_nodes: no limit .*, at most 16 .*policy.yaml:8"),
        ("donation: {mode: preemptible, qos: low, reserve_nodes: 1}", "1 .*, at least 2 .*policy.yaml:9"),
        ("donation: {mode: preemptible, qos: low, hours: ['18:59-20:00']}",
         "18:59-20:00 .*, within 19:00-07:00, 12:00-13:00 .*policy.yaml:10"),
    ],
)  # fmt: skip
def test_a_value_beyond_it_is_refused_with_both_lines_and_the_way_out(
    tmp_path: Path, lines: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=f"^c.yaml:.*{said}.*: change it, or remove it"):
        site(tmp_path, lines)


def test_what_it_allows_is_as_written_and_what_is_left_out_stays_within_it(tmp_path: Path) -> None:
    found = site(tmp_path, "donation: {mode: preemptible, qos: low, hours: ['22:00-02:00']}")
    assert found.donation is not None
    assert (found.donation.max_nodes, found.donation.reserve_nodes) == (16, 2)
    assert found.donation.hours == ("22:00-02:00",)
    plain = site(tmp_path, "donation: {mode: preemptible, qos: low}").donation
    assert plain is not None
    assert plain.hours == ("19:00-07:00", "12:00-13:00")
    slower = site(tmp_path, "poll_interval: 5m")
    assert slower.poll_interval == 300
    assert policy_of(slower).words().startswith("poll_interval at least 2m, limits.max_pending_requests at")
    assert policy_of(slower).at("limits.max_proc").endswith("policy.yaml:4")


def test_partitions_are_bound_as_their_site_is(tmp_path: Path) -> None:
    found = site(tmp_path, "partitions: {a: {limits: {max_proc: 512}}, b: {}}")
    assert {policy_of(each).path for each in sites_of(found).values()} == {policy_of(found).path}


@given(numbers=st.lists(st.integers(1, 10_000), min_size=3, max_size=3))
def test_limits_that_are_asked_are_the_less_of_both(numbers: list[int]) -> None:
    requests, processors, seconds = numbers
    asked = Limits(max_pending_requests=requests, max_proc=processors, max_tr=seconds)
    keys = parse_policy("limits: {max_pending_requests: 8, max_tr: 1h}").keys
    whole = Limits(max_pending_requests=9, max_proc=9, max_tr=9, partitions={"a": asked})
    found = capped(whole, keys.limits).partitions["a"]
    assert found == Limits(
        max_pending_requests=min(8, requests), max_proc=processors, max_tr=min(3600, seconds)
    )


def parse_policy(text: str) -> Policy:
    with tempfile.TemporaryDirectory() as folder:
        return policy(Path(folder), text)


@pytest.mark.parametrize(
    "lines",
    ["ssh: {host: far}\n    poll_interval: 1s", "donation: null\n    poll_interval: 10m"],
    ids=["a scheduler on another machine", "within it"],
)
def test_it_binds_schedulers_of_this_machine_only(tmp_path: Path, lines: str) -> None:
    site(tmp_path, lines)


def test_without_a_scheduler_of_this_machine_it_is_not_even_read() -> None:
    def damaged() -> Policy:
        raise ConfigError("damaged")

    assert load_config(None, damaged) is BUILT_IN
    parse_config("sites: {here: {backend: local}}", "c.yaml", damaged)
    with pytest.raises(ConfigError, match="damaged"):
        parse_config("sites: {hpc: {backend: slurm}}", "c.yaml", damaged)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("poll_intervall: 2m", r"policy.yaml:1: poll_intervall: unknown key \(did you mean"),
        ("limits:\n  max_proc: 0", "policy.yaml:2: limits.max_proc: must be more than 0"),
        ("poll_interval: 0s", "policy.yaml:1: poll_interval: must be more than 0"),
        ("donation: {hours: [late]}", "policy.yaml:1: donation.hours.0.: 'late' is not a part of the day"),
        ("- a", "policy.yaml:1: the file: "),
        ("a: [", "policy.yaml:.*not valid YAML"),
    ],
)
def test_a_damaged_one_is_named_by_line_and_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        policy(tmp_path, text)


def test_one_that_others_may_write_is_refused_with_the_way_out(tmp_path: Path) -> None:
    policy(tmp_path)
    path = tmp_path / "policy.yaml"
    with pytest.raises(ConfigError, match=rf"belongs to user id {os.getuid()} .* chown root .*; chmod 644"):
        read_policy(path, os.getuid() + 1)
    path.chmod(0o664)
    with pytest.raises(ConfigError, match="has mode 664; only root may write"):
        read_policy(path, os.getuid())


def test_none_and_an_empty_one_bind_nothing(tmp_path: Path) -> None:
    assert read_policy(tmp_path / "none") == Policy()
    assert policy(tmp_path, "# nothing yet\n").words() == ""
    assert site(tmp_path, "poll_interval: 1s", "").poll_interval == 1


@fuzz
@given(damaged([POLICY, *POLICY.split("\n")]))
def test_any_text_is_understood_or_refused(text: str) -> None:
    survives(parse_policy, text)


def test_parts_of_the_day_are_minutes() -> None:
    assert minutes_of(["23:59-00:01"]) == {0, 1439}
    assert minutes_of(["12:00-24:00"]) == set(range(720, 1440))
    assert len(minutes_of([])) == 1440
