"""CPython's own tests of executors (`test.test_concurrent_futures`) against `adaptor.Executor`, run by hand:

    apt-get install libpython3.11-testsuite
    python -m tests.campaign.stdlib_executor /usr/lib/python3.11/test

Needs a daemon, or a configuration by which one starts, with a site of two processors.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
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


def cases(folder: Path) -> list[type[unittest.TestCase]]:
    """The test cases that any executor has to pass, with ours in place of a pool."""
    import test

    if not (folder / "test_concurrent_futures.py").exists():
        raise SystemExit(f"{folder}: has no test_concurrent_futures.py")
    test.__path__.insert(0, str(folder))
    import test.test_concurrent_futures as theirs  # type: ignore[import-not-found]

    cloudpickle.register_pickle_by_value(theirs)  # no node finds it

    class Ours(theirs.ExecutorMixin):  # type: ignore[misc]
        worker_count = 2
        executor_type = adaptor.Executor

        def get_context(self) -> Any:
            raise unittest.SkipTest("of multiprocessing")

    return [type(f"Ours{base}", (Ours, getattr(theirs, base), theirs.BaseTestCase), {}) for base in BASES]


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("/usr/lib/python3.11/test")
    suite = unittest.TestSuite()
    for case in cases(folder):
        for name in unittest.defaultTestLoader.getTestCaseNames(case):
            if name not in LEFT_OUT and (len(sys.argv) < 3 or name in sys.argv[2:]):
                suite.addTest(case(name))
    done = unittest.TextTestRunner(verbosity=2).run(suite)
    for name, why in LEFT_OUT.items():
        print(f"left out: {name}: {why}")
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
