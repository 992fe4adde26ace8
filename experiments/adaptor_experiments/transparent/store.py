"""The finished pieces."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor_experiments import resumable
from adaptor_experiments.transparent.sample import Outcome


class Store(resumable.Store[Outcome]):
    """A JSON file for each submission time on one trace under one load."""

    ending = "json"

    def encode(self, outcomes: Sequence[Outcome]) -> bytes:
        return msgspec.json.encode(outcomes)

    def decode(self, content: bytes) -> list[Outcome]:
        return msgspec.json.decode(content, type=list[Outcome])
