"""Where the tasks of a batch script write: its own lines say so."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.batch_script import element_of, output_files


class ScriptOutputs:
    """The files that a bag's script names for its tasks, which may not be there."""

    def __init__(self, db: sqlite3.Connection, bag: int) -> None:
        (packed,) = db.execute("SELECT spec FROM bag WHERE id = ?", (bag,)).fetchone()
        spec = msgspec.msgpack.decode(packed, type=BagSpec)
        self._bag = bag
        self._script = spec.script

    def of(
        self, task: int, environment: Mapping[str, str] | None, node: str | None
    ) -> tuple[str | None, str | None]:
        """Standard output and error of a task; None: they lie where the bag's options say.

        `environment`: the task's own.
        """
        if self._script is None:
            return None, None
        element = element_of(self._script, self._bag, task, environment)
        return output_files(self._script, element, node or "")
