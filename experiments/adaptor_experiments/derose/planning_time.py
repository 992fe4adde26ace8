"""How long the decisions of a site take."""

from __future__ import annotations

import time

from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.snapshot import Snapshot


class TimedDecider:
    """Decides, and takes the time."""

    def __init__(self) -> None:
        self.decisions = 0
        self.seconds = 0.0
        """Of processor time."""

    def __call__(self, snapshot: Snapshot) -> Decision:
        begin = time.process_time()
        decision = decide(snapshot)
        self.seconds += time.process_time() - begin
        self.decisions += 1
        return decision
