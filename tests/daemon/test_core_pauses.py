"""A bag that pauses: its requests, what `why` and the messages say, and a new daemon."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from adaptor.protocol.messages import Ending, Report, Result
from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import begin, hear, leased, steps


def test_a_paused_bag_has_no_queued_request_and_gets_one_when_it_goes_on(tmp_path: Path) -> None:
    site = FakeSite(tmp_path)
    bag = site.submit_bag(5)
    steps(site)
    requests = len(site.states())
    assert set(site.states()) == {"queued"}
    site.state.core.broker.pause(bag)
    asyncio.run(site.state.core.commit())
    steps(site)
    assert all(pilot.leaving for pilot in site.state.pilots.values()), "they are withdrawn"
    assert site.told("paused") == [
        f"bag {bag} is paused: its user has paused it; adaptor resume {bag} goes on"
    ]
    site.restart()
    steps(site)
    assert len(site.states()) == requests, "none is made"
    site.state.core.broker.resume(bag, time.time())
    asyncio.run(site.state.core.commit())
    steps(site)
    assert len(site.states()) > requests
    site.journal.close()


def test_a_bag_that_fails_from_the_start_pauses(tmp_path: Path) -> None:
    site = FakeSite(tmp_path)
    bag = site.submit_bag(40)
    worker = f"w{begin(site)}"
    ended = 0
    while keys := leased(site, worker):
        for key in keys:
            result = Result(key, Ending.EXITED, started=time.time() - 1, wall=0.5, exit_code=127)
            hear(site, worker, Report(results=[result], free_processors=2, free_memory=1 << 30))
            ended += 1
    assert 10 <= ended <= 12
    (told,) = site.told("paused")
    assert f"bag {bag} is paused: its first 10 attempts all failed alike" in told
    site.journal.close()
