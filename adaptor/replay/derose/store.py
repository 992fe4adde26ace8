"""The folder of an experiment: one file per finished sample, so that it can be stopped and resumed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec

from adaptor.replay.derose.design import Settings, Workload
from adaptor.replay.derose.sample import Outcome
from adaptor.replay.derose.table_file import TableFormat, replace, write_table
from adaptor.replay.errors import ReplayError

COLUMNS = Outcome.__struct_fields__


class Store:
    """A sample's file appears whole or not at all, and its name says which it is: nothing counts twice."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        """Open the folder, made where it does not exist.

        Raises:
            ReplayError: it holds results of other settings, or cannot be written.
        """
        self.folder = folder
        self._parts = folder / "samples"
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            self._check(folder / "settings.json", settings)
        except OSError as error:
            raise ReplayError(f"{folder}: {error.strerror or error}") from error

    def has(self, workload: Workload, sample: int) -> bool:
        return self._path(workload, sample).exists()

    def add(self, workload: Workload, sample: int, outcomes: list[Outcome]) -> None:
        """Raises ReplayError: the file cannot be written."""
        write_table(columns_of(outcomes), self._path(workload, sample), "csv")

    def read(self, workload: Workload, sample: int) -> list[Outcome]:
        """Raises ReplayError: the file is damaged."""
        path = self._path(workload, sample)
        with path.open(newline="", encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        try:
            return msgspec.convert(rows, list[Outcome], strict=False)
        except msgspec.ValidationError as error:
            raise ReplayError(f"{path}: {error}; remove it, and it is made again") from error

    def write_all(self, outcomes: list[Outcome], kind: TableFormat) -> Path:
        """One table of all results: `results.csv` or `.parquet`. Raises ReplayError: it cannot be written."""
        return write_table(columns_of(outcomes), self.folder / "results", kind)

    def _path(self, workload: Workload, sample: int) -> Path:
        return self._parts / f"{workload.key}-{sample:04}.csv"

    def _check(self, path: Path, settings: Settings) -> None:
        wanted = msgspec.json.encode(settings)
        if not path.exists():
            replace(path, wanted)
        elif path.read_bytes() != wanted:
            raise ReplayError(
                f"{self.folder} holds results of other settings ({path.name}); take another folder"
            )


def columns_of(outcomes: list[Outcome]) -> dict[str, list[Any]]:
    rows = [msgspec.structs.astuple(each) for each in outcomes]
    return dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
