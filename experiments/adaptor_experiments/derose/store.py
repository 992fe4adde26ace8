"""The finished samples: tables that other programs read too."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec

from adaptor.figures.table_file import as_csv
from adaptor_experiments import resumable
from adaptor_experiments.derose.sample import Outcome


class Store(resumable.Store[Outcome]):
    """A CSV file for each sample."""

    ending = "csv"

    def encode(self, outcomes: Sequence[Outcome]) -> bytes:
        return as_csv(Outcome.__struct_fields__, map(msgspec.structs.astuple, outcomes))

    def decode(self, content: bytes) -> list[Outcome]:
        rows = csv.DictReader(io.StringIO(content.decode("ascii"), newline=""))
        return msgspec.convert(list(rows), list[Outcome], strict=False)
