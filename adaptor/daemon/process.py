"""Starting the daemon: in the foreground, or detached from the login session."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from adaptor.config.loading import config_path, configured_place, load_config, remember_config
from adaptor.daemon.clock import system_clock
from adaptor.daemon.configured import Configured, check_sites, configured, continued
from adaptor.daemon.evidence import last_line
from adaptor.daemon.jobs.record import JOB_VARIABLE
from adaptor.daemon.lock import DaemonLock, LockHeldError, take_lock
from adaptor.daemon.server import port_limits
from adaptor.errors import AdaptorError, VanishedSitesError, os_problem
from adaptor.journal.damage import check_not_lost
from adaptor.journal.database import FILE
from adaptor.private_files import open_log
from adaptor.processes.commands import module_command, raise_limit
from adaptor.protocol.state_directory import private_directory
from adaptor.units import format_duration

log = logging.getLogger(__name__)

LOG = "daemon.log"
NAME = "adaptor-daemon"
"""Name of the process, for `ps -C`, `pgrep` and `top`, which otherwise show an interpreter."""
READY, HELD, VANISHED = b"!", b"=", b"?"
"""First letters of the daemon's word to its starter: it can be asked, and the file that it goes on with
follows if none was named; another one runs; sites have vanished, as follows. All else says why not."""
_OVERWRITE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
START_TIMEOUT = 100.0
"""Seconds within which a new daemon has to answer; asking a slow scheduler for limits is part of it."""


def run(
    directory: Path,
    config: str | None,
    until_idle: bool = False,
    on_ready: Callable[[Path | None], None] = lambda _: None,
    *,
    drop_sites: bool = False,
) -> int:
    """Be the daemon, in the foreground, until stopped; the exit code.

    Args:
        on_ready: called once it can be asked, with the configuration of the last daemon if it is used because
            none is named (see `continued`).
        drop_sites: go on without sites that left the configuration, whatever depends on them.

    Raises:
        LockHeldError: another daemon runs here.
        VanishedSitesError: work depends on sites that left the configuration.
        AdaptorError: the configuration is at fault, or a scheduler that has to be asked for its limits does
            not answer.
    """
    private_directory(directory)
    with contextlib.suppress(OSError):  # no Linux: then it has the name of its interpreter
        Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    descriptors = raise_limit()
    with take_lock(directory) as lock:
        check_not_lost(directory / FILE)
        last = continued(directory, config)
        first = configured(config if last is None else str(last))
        if not drop_sites:
            check_sites(directory, first)
        _log_to(directory / LOG)
        log.info("started: pid %d, state in %s", os.getpid(), directory)
        if last is not None:
            log.info("no configuration is named, and work is unfinished: %s, as the last daemon", last)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            _serve_all(
                directory, first, descriptors, until_idle, lambda: on_ready(last), lock.displaced, _away(lock)
            )
        except AdaptorError as error:
            log.error("stopping: %s", error)
            raise
        except Exception:
            log.exception("stopping: internal error")
            raise
        log.info("stopped")
    return 0


def _away(lock: DaemonLock) -> str:
    """Log the time without a daemon; return it for `adaptor why` if this daemon runs in a job, else empty."""
    if lock.before is None:
        return ""
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(lock.before))
    text = f"no daemon ran for {format_duration(max(0.0, system_clock() - lock.before))} (since {began})"
    log.info("%s", text)
    return text if JOB_VARIABLE in os.environ else ""


def _serve_all(
    directory: Path,
    first: Configured,
    descriptors: int,
    until_idle: bool,
    on_ready: Callable[[], None] | None,
    displaced: Callable[[], str] = lambda: "",
    away: str = "",
) -> None:
    """One service after the other: an edited configuration ends one and begins the next.

    Raises AdaptorError: the first one could not begin; a later one gives way to the one before it.
    """
    from adaptor.daemon.service import Service

    started, began = system_clock(), False

    async def serve(given: Configured, problem: str) -> tuple[Configured, Configured | None]:
        """Run one service; return its last configuration, and that of the next service or None."""
        nonlocal began
        remember_config(directory, given.path, given.config.sites)
        limits = port_limits(descriptors, len(given.config.sites))
        service = Service(directory, given, limits, started, problem, displaced, away)
        began = True
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: service.stop(pilots=False))
        await service.run(until_idle, on_ready)
        return service.present, service.next

    given, before, problem = first, None, ""
    while True:
        began = False
        try:
            before, following = asyncio.run(serve(given, problem))
        except AdaptorError as error:
            if began or before is None or given is before:
                raise
            log.error("the new configuration cannot be used, the one before goes on: %s", error)
            given, problem = before, str(error)
            continue
        if following is None:
            return
        given, on_ready, away = following, None, ""
        problem = problem if given.digest == before.digest else ""


def start(
    directory: Path, config: str | None, until_idle: bool = False, *, drop_sites: bool = False
) -> Path | None:
    """Start a daemon that outlives this process and the login session; returns when it answers. An interrupt
    before that ends it.

    Returns the configuration of the last daemon if it is used because none is named (see `continued`).

    Raises:
        LockHeldError: another daemon is starting or running.
        VanishedSitesError: work depends on sites that left the configuration; `drop_sites` goes on without.
        AdaptorError: it ended, or did not answer in time; the message has the end of its log.
    """
    private_directory(directory)
    command = [*module_command(sys.executable, "adaptor.daemon", "--state", str(directory))]
    path = config_path(config)
    if path is not None:
        if configured_place(config)[1]:
            command += ["--config", str(path.resolve())]
        load_config(path)  # a mistake in it is better told here than in a log
    command += ["--until-idle"] * until_idle + ["--drop-sites"] * drop_sites
    errors = directory / "daemon.err"
    ready, signal_ready = os.pipe()
    command += ["--ready-fd", str(signal_ready)]
    try:
        with os.fdopen(os.open(errors, _OVERWRITE, 0o600), "wb") as stream:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                cwd="/",
                start_new_session=True,
                pass_fds=(signal_ready,),
            )
    except OSError as error:
        os.close(ready)
        raise AdaptorError(f"{errors}: cannot be written: {error.strerror}") from error
    finally:
        os.close(signal_ready)
    try:
        return _await(process, ready, errors)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise


def _await(process: subprocess.Popen[bytes], ready: int, errors: Path) -> Path | None:
    """Wait for the daemon's word. Returns and raises what `start` does."""
    with os.fdopen(ready, "rb") as pipe:
        answered, _, _ = select.select([pipe], [], [], START_TIMEOUT)
        word = pipe.read() if answered else b""
    if word[:1] == READY:
        return Path(os.fsdecode(word[1:])) if word[1:] else None
    if not answered:
        process.terminate()
        raise AdaptorError(_last_words(errors, f"the daemon was not ready within {START_TIMEOUT:.0f} s"))
    process.wait()
    if word == HELD:
        raise LockHeldError(f"{errors.parent}: another daemon is starting or running")
    if word[:1] == VANISHED:
        raise VanishedSitesError(word[1:].decode(errors="replace"))
    problem = f"the daemon ended at once (exit code {process.returncode})"
    if word:  # on a full disk nothing is in the file
        raise AdaptorError(f"{problem}: {word.decode(errors='replace')}")
    raise AdaptorError(_last_words(errors, problem))


def _last_words(errors: Path, problem: str) -> str:
    said = last_line(errors.read_text(encoding="utf-8", errors="replace"))
    return f"{problem}: {said.removeprefix('adaptor: ')}" if said else problem


class _PrivateLog(RotatingFileHandler):
    """Log whose files are all 0600. Lines that cannot be written are counted."""

    _lost = 0
    _why = ""

    def emit(self, record: logging.LogRecord) -> None:
        lost, self._lost = self._lost, 0
        if lost:
            text = f"{lost} lines could not be written into this log: {self._why}"
            super().emit(logging.makeLogRecord({"levelname": "WARNING", "msg": text}))
            if self._lost:  # nor can this one
                self._lost = lost + 1
                return
        super().emit(record)

    def handleError(self, _record: logging.LogRecord) -> None:
        """Python would print a traceback into daemon.err, once for each line."""
        error = sys.exc_info()[1]
        self._lost += 1
        self._why = os_problem(error) if isinstance(error, OSError) else repr(error)

    def _open(self) -> TextIOWrapper:
        return os.fdopen(open_log(self.baseFilename), "a", encoding=self.encoding)


def _log_to(path: Path) -> None:
    """Write the log into a file. Raises AdaptorError: the file cannot be opened."""
    try:
        handler = _PrivateLog(path, maxBytes=5_000_000, backupCount=2, encoding="utf-8")
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be opened: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("apscheduler").setLevel(logging.WARNING)
