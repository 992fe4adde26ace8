"""CPython's own tests of executors (`test.test_concurrent_futures`) against `adaptor.Executor`, run by hand:

    apt-get install libpython3.13-testsuite
    python -m tests.campaign.stdlib_executor [NAME OF A TEST]...

Needs a daemon, or a configuration by which one starts, with a site of two processors.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import sysconfig
import tempfile
import time
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

import adaptor

LEFT_OUT = {
    "test_interpreter_shutdown": "imports the executor from concurrent.futures",
    "test_submit_after_interpreter_shutdown": "imports the executor from concurrent.futures",
    "test_hang_gh83386": "imports the executor from concurrent.futures",
    "test_cancel_futures": "expects that a call has started the moment it is submitted",
}
"""By test: why it says nothing of an executor that is no pool of this machine."""
BASES = ("ExecutorTest", "WaitTests", "AsCompletedTests", "ExecutorShutdownTest")
LIBRARY = Path(sysconfig.get_path("stdlib"))
_TESTS = "test.test_concurrent_futures"
_PARTS = ("executor", "test_wait", "test_as_completed", "test_shutdown", "util")
MODULES = (_TESTS,) if sys.version_info < (3, 12) else tuple(f"{_TESTS}.{part}" for part in _PARTS)


def unavailable() -> str | None:
    """Why CPython's tests of executors cannot run here; None: they can."""
    files = [LIBRARY / f"{module.replace('.', '/')}.py" for module in MODULES]
    missing = [str(file) for file in files if not file.exists()]
    if not missing:
        return None
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{missing[0]}: not found (Debian: apt-get install libpython{version}-testsuite)"


def _modules() -> list[ModuleType]:
    import test

    test.__path__.insert(0, str(LIBRARY / "test"))
    return [importlib.import_module(module) for module in MODULES]


class FileEvent:
    """As `threading.Event`, for calls in other processes that see the same files."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def set(self) -> None:
        self._path.touch()

    def wait(self, timeout: float = 60) -> bool:
        deadline = time.monotonic() + timeout
        while not self._path.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return self._path.exists()


def cases() -> list[type[unittest.TestCase]]:
    """The test cases that any executor has to pass, with ours in place of a pool."""
    theirs: dict[str, Any] = {}
    for module in _modules():
        cloudpickle.register_pickle_by_value(module)  # no node finds it
        theirs |= vars(module)

    class Ours(theirs["ExecutorMixin"]):  # type: ignore[misc]
        worker_count = 2
        executor_type = adaptor.Executor

        def get_context(self) -> Any:
            raise unittest.SkipTest("of multiprocessing")

        def create_event(self) -> FileEvent:
            folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, folder)
            return FileEvent(Path(folder, "set"))

    return [type(f"Ours{base}", (Ours, theirs[base], theirs["BaseTestCase"]), {}) for base in BASES]


def main() -> int:
    if reason := unavailable():
        raise SystemExit(reason)
    suite = unittest.TestSuite()
    for case in cases():
        for name in unittest.defaultTestLoader.getTestCaseNames(case):
            if name not in LEFT_OUT and (len(sys.argv) < 2 or name in sys.argv[1:]):
                suite.addTest(case(name))
    done = unittest.TextTestRunner(verbosity=2).run(suite)
    for name, why in LEFT_OUT.items():
        print(f"left out: {name}: {why}")
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
