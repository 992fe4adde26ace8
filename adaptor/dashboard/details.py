"""The costly part of the page: attempts in pilots, and the tasks of bags in sums."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor import api
from adaptor.api import LearnedRuntime
from adaptor.client.reading import Asker
from adaptor.dashboard.page import BagDetails, FailureRow
from adaptor.endings import ending
from adaptor.outputs.finding import Outputs, tail

_MOST_SPANS = 1500
_MOST_BINS, _FEWEST_BINS, _MOST_PARTS = 200, 30, 6000
_AT_A_TIME = 8
"""Pilots in one question."""


class Details(msgspec.Struct, frozen=True):
    activity: api.Activity
    details: list[BagDetails]

    def with_learned(
        self, learned: Sequence[LearnedRuntime], pilots: Sequence[api.PilotRecord]
    ) -> list[BagDetails]:
        """The details, with what is known now of their bags."""
        bags = {known.bag for known in learned}
        requests = [pilot for pilot in pilots if not pilot.node]
        # Of several bags, a pilot does not tell for which of them it was asked.
        newest = max(requests, key=lambda pilot: pilot.id, default=None) if len(bags) == 1 else None
        return [
            msgspec.structs.replace(
                each,
                learned=[known for known in learned if known.bag == each.bag],
                walltime=newest.tr if newest is not None and each.bag in bags else None,
            )
            for each in self.details
        ]


def read_activity(ask: Asker, pilots: Sequence[int], most: int = _MOST_SPANS) -> api.Activity:
    """What ran in these pilots, a few of them at a time, so that the daemon never stands still for long."""
    spans, busy = [], []
    bins = max(_FEWEST_BINS, min(_MOST_BINS, _MOST_PARTS // max(1, len(pilots))))
    for at in range(0, len(pilots), _AT_A_TIME):
        few = list(pilots[at : at + _AT_A_TIME])
        told = ask(api.GetActivity(few, most * len(few) // len(pilots), bins))
        spans += told.spans
        busy += told.busy
    return api.Activity(spans, busy)


def read_details(ask: Asker, bag: api.BagView) -> BagDetails:
    sums = ask(api.GetTaskSums(bag.id))
    outputs = Outputs(bag.output, packed=bag.output_files == "packed")
    return BagDetails(
        bag=bag.id,
        runtimes=sums.runtimes,
        progress=sums.progress,
        failures=[
            FailureRow(
                words=ending(each.exit_code, each.signal, each.error),
                count=each.count,
                task=each.task,
                node=each.node,
                ended=each.ended,
                stderr=tail(outputs.find_one(each.task, each.attempt, "stderr", each.stderr)),
            )
            for each in sums.failures
        ],
        other_failures=sums.other_failures,
        learned=[],
        walltime=None,
    )
