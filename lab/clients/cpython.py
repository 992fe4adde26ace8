"""CPython's own tests of executors (`test.test_concurrent_futures`) against `adaptor.Executor`.

    python -m lab.clients.cpython [NAME OF A TEST]...

Up to Python 3.11 they are one file, later a package. Needs a daemon with a site of two processors.
"""

from __future__ import annotations

import contextlib
import importlib
import shutil
import sys
import sysconfig
import tempfile
import time
import unittest
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from types import ModuleType
from typing import Any

import adaptor
from lab.clients.left_out import LEFT_OUT

BASES = (
    *("ExecutorTest", "WaitTests", "AsCompletedTests", "ExecutorShutdownTest"),
    *("InitializerMixin", "FailingInitializerMixin", "ExecutorDeadlockTest"),
)
LIBRARY = Path(sysconfig.get_path("stdlib"))
_TESTS = "test.test_concurrent_futures"
_PARTS = ("executor", "test_wait", "test_as_completed", "test_shutdown", "test_init", "test_deadlock", "util")
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


class Executor(adaptor.Executor):
    """With the attribute in which CPython's tests look whether a pool is broken."""

    @property
    def _broken(self) -> BaseException | None:
        return self._session._broken


def cases() -> list[type[unittest.TestCase]]:
    """The test cases that any executor has to pass, with ours in place of a pool."""
    theirs: dict[str, Any] = {}
    for module in _modules():
        theirs |= vars(module)

    class Ours(theirs["ExecutorMixin"]):  # type: ignore[misc]
        worker_count = 2
        executor_type = Executor

        def get_context(self) -> Any:
            raise unittest.SkipTest("of multiprocessing")

        def create_event(self) -> FileEvent:
            folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, folder)
            return FileEvent(Path(folder, "set"))

        def _assert_logged(self, _text: str) -> Any:
            """A pool of threads logs here what its initializer raises; ours is in the exception."""
            return contextlib.nullcontext()

        def _check_crash(
            self,
            error: type[BaseException],
            func: Callable[..., Any],
            *args: Any,
            ignore_stderr: bool = False,
        ) -> None:
            """An error comes in place of a hang. Where a pool breaks, the executor goes on."""
            del ignore_stderr
            expected = BaseException if error.__name__ == "BrokenProcessPool" else error
            try:
                self.executor.submit(func, *args).result(60)
            except FutureTimeoutError:
                self.fail("no result and no error: a deadlock")
            except expected:
                assert self.executor.submit(pow, 2, 5).result(60) == 32
            else:
                self.fail(f"{error.__name__} not raised")

    return [type(f"Ours{base}", (Ours, theirs[base], theirs["BaseTestCase"]), {}) for base in BASES]


def main() -> int:
    if reason := unavailable():
        raise SystemExit(reason)
    suite, left_out = unittest.TestSuite(), LEFT_OUT["cpython"]
    seen = []
    for case in cases():
        for name in unittest.defaultTestLoader.getTestCaseNames(case):
            if name in left_out:
                seen.append(f"left out: {name}: {left_out[name]}")
            elif len(sys.argv) < 2 or name in sys.argv[1:]:
                suite.addTest(case(name))
    done = unittest.TextTestRunner(verbosity=2).run(suite)
    print("\n".join(seen))
    problems = len(done.failures) + len(done.errors)
    print(
        f"cpython {sys.version.split()[0]}: {done.testsRun - problems - len(done.skipped)} passed,"
        f" {len(done.skipped)} skipped, {len(seen)} left out, {problems} failed"
    )
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
