"""The least budget of a bag: at the price of the time that it will use."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor.bag_spec import BagSpec
from adaptor.daemon.client.credits import budget_writer
from adaptor.errors import UsageError
from tests.daemon.donating_site import DonatingSite


def test_a_bag_that_only_uses_donated_nodes_needs_only_their_price(tmp_path: Path) -> None:
    site = DonatingSite(tmp_path / "state")
    price = msgspec.structs.replace(site.config.price, explicit=100.0, donated=1.0)
    site.config = msgspec.structs.replace(site.config, price=price)
    site.restart()
    spec = BagSpec(name="b", cwd="/", output="/nowhere", environment={})
    with pytest.raises(UsageError, match="holds no request"):
        budget_writer(site.state.core, {"here": site.state}, spec, 1.0)
    lent = msgspec.structs.replace(spec, allocation="transparent")
    assert budget_writer(site.state.core, {"here": site.state}, lent, 1.0) is not None
    with pytest.raises(UsageError, match="holds no request"):
        budget_writer(site.state.core, {"here": site.state}, lent, 0.01)
