"""The lived journal of `fixtures/journals`, asked live through the daemon's handlers, and offline.

Time stands still at `NOW`, so answers and what the command line prints can be recorded.
"""

from __future__ import annotations

import asyncio
import calendar
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adaptor import api
from adaptor.api import DaemonView, JournalView, RatesView, UpkeepView
from adaptor.api.question import A
from adaptor.bag_spec import BagSpec
from adaptor.cli import daemon_process
from adaptor.client.asking import DaemonConnection
from adaptor.config.schema import HooksConfig, NotifyConfig, PriceConfig, SiteConfig
from adaptor.daemon.client.commands import serve
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.sites import terms_of
from adaptor.daemon.treasury import costs_of
from adaptor.daemon.upkeep.notifying import Notifier
from adaptor.daemon.upkeep.retention import Retention
from adaptor.errors import AdaptorError
from adaptor.journal.database import FILE
from adaptor.journal.journal import Journal
from adaptor.units import Duration
from tests.daemon.fake_site import LIMITS, FakeBackend, FakeServer

LIVED = Path(__file__).parents[2] / "fixtures" / "journals" / "format-1.sqlite"
NOW = 1795531440.0
"""Ten seconds after the last event of the journal."""

DAEMON = DaemonView(
    pid=4711,
    host="login",
    version="0.1.0",
    started=NOW - 60,
    state_directory="/state",
    workers=2,
    unfinished=2,
    config_file="/etc/sites.yaml",
    config_digest="d",
)
UPKEEP = UpkeepView(
    addresses=["tcp://127.0.0.1:5"],
    journal=JournalView(size=3 << 20, bags=4, oldest=NOW - 3600, keep=None, compacting=False),
    rates=RatesView(
        seconds=3600.0, results=50, journal_growth=-2048, scheduler_commands=240, cpu=9.5, memory=48 << 20
    ),
)


RECORDED_OUTPUTS = "/tmp/adaptor-fixture"  # a name, not a place
"""Folder of the outputs of the lived journal's tasks."""
_PRINTED = {"adaptor-1": ("one", "two", "three"), "adaptor-2": ("good",)}


def outputs_in(folder: Path) -> Path:
    """The folder that has the outputs of the lived journal's tasks, made if it is not there."""
    outputs = folder / "outputs"
    for bag, texts in _PRINTED.items():
        (outputs / bag).mkdir(parents=True, exist_ok=True)
        for task, text in enumerate(texts):
            (outputs / bag / f"{task}.out").write_text(f"{text}\n")
    return outputs


def copy_lived(directory: Path) -> None:
    """The lived journal in a new state directory; its outputs are in a folder beside that."""
    directory.mkdir(mode=0o700)
    shutil.copy(LIVED, directory / FILE)
    outputs = outputs_in(directory.parent)
    with closing(sqlite3.connect(directory / FILE)) as db, db:
        for bag, packed in db.execute("SELECT id, spec FROM bag").fetchall():
            spec = msgspec.msgpack.decode(packed, type=BagSpec)
            moved = msgspec.structs.replace(spec, output=str(outputs / Path(spec.output).name))
            db.execute("UPDATE bag SET spec = ? WHERE id = ?", (msgspec.msgpack.encode(moved), bag))


class Running:
    """A daemon at one site, whose scheduler is played, on a copy of the lived journal."""

    def __init__(self, directory: Path) -> None:
        copy_lived(directory)
        config = SiteConfig(
            backend="local",
            heuristic="adaptive",
            initial_tr=Duration(60),
            price=PriceConfig(explicit=10, donated=2),
        )
        terms, costs = {"here": terms_of(config, LIMITS)}, costs_of({"here": config})
        self.core = Core(directory, Journal(directory), FakeServer(), terms, costs, clock=lambda: NOW)  # type: ignore[arg-type]
        self.sites = {"here": Site("here", config, FakeBackend(), LIMITS, self.core)}
        self.sites["here"].load_pilots()
        self.retention = Retention(self.core, None)
        self.notifier = Notifier(self.core, NotifyConfig(), HooksConfig())
        self.stalled = ""

    def view(self) -> DaemonView:
        return DAEMON

    def upkeep(self) -> UpkeepView:
        return UPKEEP

    def wake_sites(self) -> None:
        """No site steps here."""

    def stop(self, *, pilots: bool) -> None:
        """Does nothing: the daemon goes on."""

    async def reload(self) -> api.Reloading:
        return api.Reloading("/etc/sites.yaml", "d", ["new"], [], ["here"], [])

    def ask(self, question: api.Question[A]) -> A:
        """The answer of the daemon's handlers. Raises UsageError, AdaptorError: it is a failure."""
        answer = asyncio.run(serve(self, api.decode_question(api.encode_question(question))))
        return api.decode_answer(question, api.encode_answer(answer))


def rounded(value: Any) -> Any:
    """Floats to 13 digits, milliseconds of a time: the last ones are the machine's."""
    if isinstance(value, float):
        return float(f"{value:.13g}")
    if isinstance(value, dict):
        return {str(key): rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, (list, tuple)) else value


@contextmanager
def still(patch: pytest.MonkeyPatch, state: Path) -> Iterator[None]:
    """The clock stands, times are those of UTC, and the state directory is a private one."""
    local = time.gmtime
    with patch.context() as at:
        at.setenv("ADAPTOR_DIR", str(state))
        at.setenv("XDG_CONFIG_HOME", str(state / "no-config"))
        at.setattr(daemon_process, "__version__", DAEMON.version)
        at.setattr(time, "time", lambda: NOW)
        at.setattr(time, "localtime", lambda seconds=None: local(NOW if seconds is None else seconds))
        at.setattr("adaptor.journal.queries.utc_offset", lambda _at: 0)
        at.setattr("adaptor.cli.bags.why.utc_offset", lambda _at: 0)
        at.setattr(time, "mktime", lambda parts: float(calendar.timegm(parts)))
        yield


@contextmanager
def connected(patch: pytest.MonkeyPatch, running: Running) -> Iterator[None]:
    """Every connection of a client ends in this daemon."""

    def ask(self: DaemonConnection, question: api.Question[A], timeout: float = 0.0) -> A:
        return running.ask(question)

    with patch.context() as at:
        at.setattr(DaemonConnection, "ask", ask)
        yield


def answered(ask: Callable[[], object]) -> Any:
    """The record of an answer, or of its failure."""
    try:
        return rounded(msgspec.to_builtins(ask()))
    except AdaptorError as error:
        return {"failure": str(error)}
