"""What follows from the rules and the state of a site."""

from __future__ import annotations

import pytest

from adaptor.crafting.situation import USUAL, SiteRules
from adaptor.model import Limits


@pytest.mark.parametrize(("max_tr", "share"), [(USUAL, 1.0), (10 * USUAL, 1.0), (USUAL / 6, 1 / 6)])
def test_where_requests_are_short_times_are_a_share_of_the_usual_ones(max_tr: float, share: float) -> None:
    limits = Limits(max_pending_requests=1, max_proc=1, max_tr=int(max_tr))
    assert SiteRules(limits=limits).usual_share == share
