"""`python -m lab.campaign.freezing`: the tests, while processes that they start are frozen for moments.

A test that reads what another process has not written yet passes for years, and fails on a busy machine on
the day of a release. Here every process may be late: new ones above all (SIGSTOP as soon as they are seen,
SIGCONT a moment later), and now and then an old one or a worker of pytest. It costs little processor time,
so that limits of time that hold on a working machine hold here. What fails is a test that hopes to be faster
than somebody else, or a rule of the product that does.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

MARK = "ADAPTOR_FREEZING"
"""The variable of the environment by which the processes of a run are known."""
PLACES = (
    "backends", "campaign", "cli", "client", "clusters", "daemon", "dashboard", "demo", "docs", "e2e",
    "donation_agents", "executor", "journal", "packaging", "processes", "protocol", "security", "worker",
)  # fmt: skip
"""Below `tests`: those with processes."""
_LOOK = 0.02


class Odds(msgspec.Struct, frozen=True):
    """Whom to freeze, and for how long."""

    new: float = 0.15
    """Share of new processes that is frozen at once."""
    old: float = 3.0
    """Others that are frozen, per second."""
    shortest: float = 0.3
    """Seconds."""
    longest: float = 1.5
    """Seconds."""


class Freezer:
    """Freezes processes of one run; `step` is to be called all the time."""

    def __init__(self, mark: str, seed: int, odds: Odds, log: IO[str]) -> None:
        self._mark = f"{MARK}={mark}".encode()
        self._random = random.Random(seed)
        self._odds = odds
        self._log = log
        self._ours: set[int] = set()
        self._others: set[int] = set()
        self._frozen: dict[int, float] = {}
        """Until when (monotonic seconds)."""
        self._looked = time.monotonic()

    def step(self) -> None:
        now = time.monotonic()
        self._let_go(now)
        living = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        self._ours &= living
        self._others &= living
        told = {pid: self._is_ours(pid) for pid in living - self._ours - self._others}
        begun = {pid for pid, ours in told.items() if ours}
        self._ours |= begun
        self._others |= {pid for pid, ours in told.items() if ours is False}
        for pid in sorted(begun):
            if self._random.random() < self._odds.new:
                self._freeze(pid, now)
        if self._ours and self._random.random() < self._odds.old * (now - self._looked):
            self._freeze(self._random.choice(sorted(self._ours)), now)
        self._looked = now

    def end(self) -> None:
        self._let_go(float("inf"))

    def _is_ours(self, pid: int) -> bool | None:
        """Whether it is of this run, and not pytest, whose own limits of time would go on.

        None: it does not show that yet. In the moment of its start a process shows no environment, or the
        command of its parent.
        """
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            if self._mark in environment.split(b"\0"):
                return True if b"pytest" not in _command(pid) else None
            return False if environment else None
        except OSError:
            return False

    def _freeze(self, pid: int, now: float) -> None:
        if pid in self._frozen or _state(pid) in "TtXZ":  # somebody else has stopped it, or it has ended
            return
        seconds = self._random.uniform(self._odds.shortest, self._odds.longest)
        with contextlib.suppress(OSError):
            told = _command(pid)[:150].replace(b"\0", b" ").decode(errors="replace")
            os.kill(pid, signal.SIGSTOP)
            self._frozen[pid] = now + seconds
            print(f"{time.time():.2f} {pid} {seconds:.2f} {told!r}", file=self._log, flush=True)

    def _let_go(self, now: float) -> None:
        for pid in [pid for pid, until in self._frozen.items() if until <= now]:
            del self._frozen[pid]
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


@contextlib.contextmanager
def frozen_now_and_then(mark: str, seed: int, odds: Odds, log: IO[str]) -> Iterator[Callable[[], None]]:
    """To be called all the time; what is frozen is let go in the end."""
    freezer = Freezer(mark, seed, odds, log)
    try:
        yield freezer.step
    finally:
        freezer.end()


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of pytest."""
    parser = argparse.ArgumentParser(prog="python -m lab.campaign.freezing", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: another one each time")
    parser.add_argument("--new", type=float, default=Odds().new, help="share of the new ones (default 0.15)")
    parser.add_argument("--old", type=float, default=Odds().old, help="others per second (default 3)")
    parser.add_argument("--log", type=Path, default=Path("build/freezing.log"), help="who was frozen when")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest; default: all tests with processes")
    chosen = parser.parse_args(arguments)
    words = chosen.pytest or ["-n", "4", "--maxschedchunk", "1", *(f"tests/{place}" for place in PLACES)]
    mark = uuid.uuid4().hex
    chosen.log.parent.mkdir(parents=True, exist_ok=True)
    print(f"seed {chosen.seed}; frozen: {chosen.log}", flush=True)
    with chosen.log.open("w") as log:
        run = subprocess.Popen([sys.executable, "-m", "pytest", *words], env={**os.environ, MARK: mark})
        with frozen_now_and_then(mark, chosen.seed, Odds(chosen.new, chosen.old), log) as step:
            while run.poll() is None:
                step()
                time.sleep(_LOOK)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
