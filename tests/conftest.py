"""Fixtures of all tests: the real schedulers, and no deadline for hypothesis on a busy machine."""

from __future__ import annotations

import gc
import os
import sys

import pytest

# Each process of pytest would rewrite the assertions of all tests anew (20 s), and each program that a test
# starts would compile its modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

from tests.examples import register_profiles  # noqa: E402

NIGHTLY = ("tests/lab/campaign/", "tests/experiments/commands/", "tests/packaging/")
"""Folders too long for each change: `make nightly` runs them, with what is marked `nightly`, fuzzing, real
browsers and Grid Engine."""
WAITING = ("tests/backends/test_contract", "tests/e2e/test_slurm_", "tests/e2e/", "tests/security/")
"""Tests that mostly wait for other programs, in their order; the contract takes four minutes."""
LONG = ("tests/experiments/", "tests/simulation/")
"""Tests that begin before others that compute."""
WAITED_FOR = 0.5
"""Share of the files that compute which have begun when the last of those that wait begins."""

pytest_plugins = ["tests.clusters.fixtures"]

register_profiles()


# Until all tests are imported: a look for garbage at 9,000 tests takes as long as they do, and finds none.
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marked = any(map(item.get_closest_marker, ("fuzz", "browser", "gridengine")))
        if marked or item.nodeid.startswith(NIGHTLY):
            item.add_marker(pytest.mark.nightly)
    turns = _turns(list(dict.fromkeys(map(_file, items))))
    items.sort(key=lambda item: turns[_file(item)])


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _file(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


def _turns(files: list[str]) -> dict[str, float]:
    """The turn of each file: those that wait stand among those that compute, so that processors are busy, and
    long ones come early, so that the end is not a wait for one."""

    def first(begins: tuple[str, ...]) -> list[str]:
        found = [file for begin in begins for file in files if file.startswith(begin)]
        return list(dict.fromkeys(found))

    waiting = first(WAITING)
    computing = [file for file in first((*LONG, "tests/")) if file not in set(waiting)]
    turns = {file: float(turn) for turn, file in enumerate(computing)}
    return turns | {
        file: WAITED_FOR * len(computing) * turn / len(waiting) for turn, file in enumerate(waiting)
    }
