"""Bags are paused, resumed and changed."""

from __future__ import annotations

import msgspec

from adaptor import api
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client.running import RunningDaemon, answers


@answers(api.Pause)
async def _pause(running: RunningDaemon, question: api.Pause) -> list[int]:
    changed = [bag for bag in question.bags if running.core.broker.pause(bag)]
    return await _changed(running, changed)


@answers(api.Resume)
async def _resume(running: RunningDaemon, question: api.Resume) -> list[int]:
    now = running.core.now()
    changed = [bag for bag in question.bags if running.core.broker.resume(bag, now)]
    return await _changed(running, changed)


@answers(api.ChangeOptions)
async def _change(running: RunningDaemon, question: api.ChangeOptions) -> list[int]:
    broker, now = running.core.broker, running.core.now()
    specs = {bag: changed_spec(running.core.journal.bag_spec(bag), question) for bag in question.bags}
    changed = [bag for bag, spec in specs.items() if broker.change_options(bag, spec, now)]
    return await _changed(running, changed)


async def _changed(running: RunningDaemon, bags: list[int]) -> list[int]:
    """The bags that were changed, once that is written down."""
    for site in running.sites:
        running.core.broker.send_home(site)
    await running.core.commit()
    running.wake_sites()
    return bags


def changed_spec(spec: BagSpec, wanted: api.ChangeOptions) -> BagSpec:
    """The options of a bag after a change."""
    changes = {
        name: value
        for name in ("priority", "retries", "max_fails")
        if (value := getattr(wanted, name)) is not None
    }
    if wanted.max_running is not None:
        changes["max_running"] = wanted.max_running or None
    return msgspec.structs.replace(spec, **changes)
