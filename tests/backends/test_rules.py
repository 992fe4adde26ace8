"""From a site's configuration to the rules by which its requests are shaped."""

from __future__ import annotations

from adaptor.config.schema import SiteConfig
from adaptor.model import Limits
from adaptor.units import HourlyRate
from backends.registry import backend_names, backend_type, site_rules
from backends.traits import Traits

LIMITS = Limits(max_pending_requests=2, max_proc=64, max_tr=3600)


def test_margins_are_those_of_the_scheduler() -> None:
    rules = site_rules(SiteConfig(backend="slurm"), backend_type("slurm"), LIMITS, 17.0)
    assert (rules.limits, rules.pad) == (LIMITS, 17.0)
    assert (rules.time_resolution, rules.slot_margin, rules.granularity) == (60, 100, 1)


def test_arrays_and_the_reach_of_backfilling_are_those_of_the_scheduler() -> None:
    class Answers(Traits):
        most_in_array, backfilled = 1001, 500

    rules = site_rules(SiteConfig(backend="slurm"), Answers(), LIMITS, 0.0)
    assert (rules.most_in_array, rules.backfilled) == (1001, 500)


def test_a_scheduler_is_left_in_peace_and_this_machine_needs_none() -> None:
    for config, hourly in (
        (SiteConfig(backend="slurm"), 60),
        (SiteConfig(backend="local"), None),
        (SiteConfig(backend="local", max_submissions=HourlyRate(5)), 5),
    ):
        rules = site_rules(config, backend_type(config.backend), LIMITS, 0.0)
        assert (rules.max_submissions, rules.may_withdraw) == (hourly, True)


def test_only_the_local_site_says_that_no_job_of_others_comes_into_its_queue() -> None:
    for name in backend_names():
        rules = site_rules(SiteConfig(backend=name), backend_type(name), LIMITS, 0.0)
        assert rules.ours_alone is (name == "local")


def test_requests_are_whole_nodes_only_where_the_site_says_so() -> None:
    for whole, granularity in ((True, 16), (False, 1)):
        config = SiteConfig(backend="pbs", processors_per_node=16, whole_nodes=whole)
        assert site_rules(config, backend_type("pbs"), LIMITS, 0.0).granularity == granularity
