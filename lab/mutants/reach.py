"""A plugin of pytest that records which test function reaches which branch of a folder.

$REACH_OF is the folder, $REACH_FILE the file that gets a `Reach` as JSON. A branch is a pair of lines, as
coverage.py counts them (https://coverage.readthedocs.io/en/latest/branch.html). What an import runs counts
for no test, and processes that a test starts are not seen.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import msgspec
import pytest

from lab.mutants.cover import Reach, function_of


class Recorder:
    """Has coverage.py know the test that runs."""

    def __init__(self, folder: Path, file: Path) -> None:
        self._file = file
        self._data = Path(tempfile.mkdtemp()) / "coverage"
        self._coverage = coverage.Coverage(data_file=str(self._data), branch=True, source=[str(folder)])
        self._coverage.start()
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._properties: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        name = function_of(item.nodeid)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            self._properties.add(name)
        self._coverage.switch_context(name)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = function_of(report.nodeid)
        self._seconds[name] += report.duration
        if report.outcome != "passed":
            self._failed.add(name)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        branches: dict[str, list[str]] = {name: [] for name in self._seconds}
        with sqlite3.connect(self._data) as data:
            for path, name, before, after in data.execute(
                "select path, context, fromno, tono from arc"
                " join file on file.id = file_id join context on context.id = context_id where context != ''"
            ):
                branches[name].append(f"{Path(path).relative_to(Path.cwd())}:{before}:{after}")
        reach = Reach(
            {name: seconds for name, seconds in self._seconds.items() if name not in self._failed},
            {name: sorted(found) for name, found in branches.items() if name not in self._failed},
            sorted(self._properties - self._failed),
        )
        self._file.write_bytes(msgspec.json.encode(reach))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(Path(os.environ["REACH_OF"]), Path(os.environ["REACH_FILE"])))
