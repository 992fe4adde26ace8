"""The tests that touch Slurm, on the Slurm and the Python of Debian's releases: `make releases`.

    python -m tests.clusters.releases --on sid tests/backends/slurm

Each is installed by `../shared/tools/in-debian`, which needs root. Further arguments are pytest's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

SUITES = ("bookworm", "trixie", "sid")
TOOL = Path("../shared/tools/in-debian")
LOGS = Path("build/releases")
_RESULTS = "build/releases.xml"
_TESTS = f"""
set -e
make --no-print-directory dev
./tests/clusters/install-slurm
rm -f {_RESULTS}
exec .venv/bin/python -m pytest -n 2 --junitxml={_RESULTS} "$@"
"""
_BEGIN = "--- what the release says ---"
_VERSIONS = "slurmctld -V; .venv/bin/python --version"


class ReleaseError(RuntimeError):
    """No test ran on a release; the message says why."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of the tests on one release."""

    passed: int
    skipped: int
    failed: tuple[str, ...]
    """Each with the first line of what is wrong."""
    seconds: float


def unavailable(tool: Path) -> str | None:
    """Why the tests cannot run on other releases of Debian here; None: they can."""
    if not tool.exists():
        return f"{tool} not found: it runs a command in a copy of this folder on another release of Debian"
    if os.geteuid() != 0:
        return f"{tool} needs root, to install a release of Debian in a folder and to run commands there"
    if not shutil.which("debootstrap") and not shutil.which("apt-get"):
        return f"{tool} needs debootstrap, and there is no apt-get to install it"
    return None


def outcome(xml: str) -> Outcome:
    """The results of a run of pytest, from its JUnit file. Raises ReleaseError: it is none."""
    try:
        suite = ElementTree.fromstring(xml).find("testsuite")
    except ElementTree.ParseError as error:
        raise ReleaseError(f"the results of pytest cannot be read: {error}") from None
    if suite is None:
        raise ReleaseError("the results of pytest have no tests")
    cases = list(suite.iter("testcase"))
    wrong = [
        f"{case.get('classname')}::{case.get('name')}: {part.get('message', '').partition(chr(10))[0]}"
        for case in cases
        for part in case
        if part.tag in ("failure", "error")
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return Outcome(len(cases) - skipped - len(wrong), skipped, tuple(wrong), float(suite.get("time", 0)))


def run(tool: Path, suite: str, arguments: Sequence[str]) -> Outcome:
    """Run pytest with these arguments on a release. Raises ReleaseError."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{suite}.log"
    print(f"{suite}: the output is in {log}", flush=True)
    with log.open("wb") as output:
        command = [str(tool), suite, ".", "bash", "-c", _TESTS, "pytest", *arguments]
        status = subprocess.run(command, stdout=output, stderr=output, check=False).returncode
    if status > 1:  # 0 and 1: pytest came to the end
        raise ReleaseError(f"exit status {status}, see {log}")
    return outcome(_said(tool, suite, f"cat {_RESULTS}"))


def _said(tool: Path, suite: str, script: str) -> str:
    """Output of a script on a release, without what the tool itself prints before."""
    command = [str(tool), suite, ".", "bash", "-c", f"echo '{_BEGIN}'; {script}"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return said.partition(f"{_BEGIN}\n")[2]


def main(arguments: Sequence[str] | None = None, tool: Path = TOOL) -> int:
    """The exit code: 0 if nothing failed on any release."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.clusters.releases", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--on", action="append", metavar="SUITE", help="a release of Debian; other options are pytest's"
    )
    chosen, others = parser.parse_known_args(arguments)
    if reason := unavailable(tool):
        print(reason, file=sys.stderr)
        return 2
    lines, well = [], True
    for suite in chosen.on or SUITES:
        try:
            found = run(tool, suite, others or ["-m", "slurm"])
        except ReleaseError as error:
            lines.append(f"{suite}: no result: {error}")
            well = False
            continue
        for failure in found.failed:
            print(f"  failed: {failure}", flush=True)
        versions = ", ".join(_said(tool, suite, _VERSIONS).splitlines())
        lines.append(
            f"{suite} ({versions}): {found.passed} passed, {len(found.failed)} failed, "
            f"{found.skipped} skipped in {found.seconds:.0f} s"
        )
        well = well and not found.failed
    print("\n".join(lines))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
