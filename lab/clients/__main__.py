"""`python -m lab.clients [SUITE]... [--python PATH]...`: other people's tests against the adaptor.

Suites: cpython, joblib, dask, submitit (default: all). Each gets a daemon of its own with four slots.
`--python`: for CPython's tests in other versions; each of these interpreters has the adaptor installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.private_daemon import private_daemon
from lab.clients.cpython import unavailable
from lab.clients.plugin import SUITE, joblib_tests

ROOT = Path(__file__).parents[2]
SLOTS = 4
MODULES = {
    "dask": ["dask.tests.test_delayed", "dask.bag.tests.test_bag"],
    "submitit": ["submitit.local.test_local"],
}
_HOOK = """
import importlib.util, sys

def backend(**options):
    from adaptor.executor.joblib_backend import AdaptorBackend
    return AdaptorBackend(**options)

class Finder:
    \"\"\"Has joblib know the backend in the programs, too, that its tests start.\"\"\"

    def find_spec(self, name, path=None, target=None):
        if name != "joblib.parallel":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.BACKENDS["adaptor"] = backend

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""


def run(suite: str, python: str, more: Sequence[str]) -> int:
    """Run a suite beside a daemon of its own; the exit code."""
    with private_daemon(SLOTS) as place, tempfile.TemporaryDirectory(prefix="adaptor-clients-") as name:
        folder = Path(name)
        environment = {**place.environment, SUITE: suite, "PYTHONPATH": str(ROOT)}
        words = [python, "-m", "lab.clients.cpython"]
        if suite != "cpython":
            words = [
                python,
                "-m",
                "pytest",
                "-p",
                "lab.clients.plugin",
                "-p",
                "no:cacheprovider",
                "-q",
                "-rfE",
            ]
            words += ["--rootdir", name, "-c", os.devnull, "--timeout", "300", *more]
            words += [str(joblib_tests(folder))] if suite == "joblib" else ["--pyargs", *MODULES[suite]]
        if suite == "joblib":
            (folder / "hook").mkdir()
            (folder / "hook" / "sitecustomize.py").write_text(_HOOK)
            environment["PYTHONPATH"] = f"{folder / 'hook'}{os.pathsep}{ROOT}"
        return subprocess.run(words, env=environment, cwd=folder, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.clients", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=["cpython", *MODULES, "joblib", []])
    parser.add_argument(
        "--python", action="append", default=[], help="another interpreter for CPython's tests"
    )
    parser.add_argument("--pytest", action="append", default=[], help="an argument for pytest")
    chosen = parser.parse_args()
    failed = []
    for suite in chosen.suites or ["cpython", "joblib", "dask", "submitit"]:
        for python in chosen.python or [sys.executable] if suite == "cpython" else [sys.executable]:
            if suite == "cpython" and not chosen.python and (reason := unavailable()):
                print(f"cpython: not run: {reason}")
            elif run(suite, python, chosen.pytest):
                failed.append(f"{suite} ({python})")
    print(f"failed: {', '.join(failed)}" if failed else "all passed but for what is left out")
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main())
