from __future__ import annotations

from collections.abc import Iterator

import pytest

from adaptor.protocol.messages import Orders
from tests.worker.calls.bag_of_calls import Calls, bags
from tests.worker.fake_daemon import Harness


@pytest.fixture(scope="module")
def one_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    made = Harness(tmp_path_factory.mktemp("worker"))
    try:
        made.started(ADAPTOR_PROCESSORS=1)
        yield made
    finally:
        made.stop()


@pytest.fixture
def calls(one_worker: Harness) -> Iterator[Calls]:
    """A bag of its own for each test, at a worker of one processor that they share."""
    bag = next(bags)
    yield Calls(one_worker, bag)
    one_worker.daemon.send(Orders(ended_bags=[bag]))
