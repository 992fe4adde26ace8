"""Several bags with budgets at a site that allows few requests."""

from __future__ import annotations

from tests.daemon.budgeted_site import steps, submit_budgeted
from tests.daemon.fake_site import LIMITS, FakeSite


def test_bags_whose_budgets_hold_no_request_take_no_place_of_another(site: FakeSite) -> None:
    """As many as the site allows requests."""
    first = [submit_budgeted(site, 3, 0.0001) for _ in range(LIMITS.max_pending_requests)]
    steps(site)
    assert set(site.state.core.decided.paused["here"]) == set(first)
    rich = submit_budgeted(site, 3, 1000.0)
    steps(site)
    assert {pilot.bag for pilot in site.state.pilots.values()} == {rich}
