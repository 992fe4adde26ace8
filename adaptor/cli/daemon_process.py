"""The daemon as a process: started when a question needs one, restarted, stopped; its configuration."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from adaptor import __version__, api
from adaptor.api import DaemonView
from adaptor.api.question import A
from adaptor.cli.login_node import check_place
from adaptor.cli.printing import clock, plural, printable
from adaptor.client import asking
from adaptor.client.bags import Client
from adaptor.errors import AdaptorError, NoDaemonError, UsageError
from adaptor.protocol.access import AccessError
from adaptor.protocol.state_directory import state_directory

T = TypeVar("T")


def ensure_daemon(
    config: str | None,
    until_idle: bool = False,
    *,
    drop_sites: bool = False,
    sites: Collection[str] | None = None,
) -> bool:
    """Start a daemon if none is running; True if one was started.

    If another command starts one at the same time, that one is used. Where a job runs the daemon, that is
    waited for.

    Args:
        until_idle: the new daemon ends by itself when all bags have ended.
        drop_sites: the new daemon goes on without sites that left the configuration.
        sites: the sites of tasks that will be submitted (see `check_place`); None: no tasks will be.

    Raises:
        LoginNodeError: tasks would run on a login node, and no site is named.
        UsageError: one runs with another configuration than `config`.
        NoDaemonError: a job is to run it, and has not started within `asking.PATIENCE` seconds.
        AdaptorError: it could not be started.
    """
    until = time.monotonic() + asking.PATIENCE
    while True:
        daemon = find_daemon()
        if sites is not None:
            check_place(daemon, config, sites)
        if daemon is not None:
            break
        asking.check_own_key("start a daemon, and none is running")
        if _await_job(until):
            continue
        from adaptor.daemon.lock import LockHeldError
        from adaptor.daemon.process import start

        try:
            last = start(state_directory(), config, until_idle, drop_sites=drop_sites)
        except LockHeldError:
            if time.monotonic() > until:
                raise
            continue
        if last is not None:
            click.echo(
                f"adaptor: work is unfinished, so the daemon uses {printable(str(last))}, as the last one did"
                " (--config FILE names another)",
                err=True,
            )
        return True
    if config is not None and _other_file(daemon, config):
        running = printable(daemon.config_file or "no configuration")
        raise UsageError(
            f"the daemon runs with {running}, not with {config}; to go on with that one:"
            f" adaptor daemon restart --config {shlex.quote(config)}"
        )
    return False


def _await_job(until: float) -> bool:
    """Whether a job runs the daemon; then returns when one may have started.

    Raises NoDaemonError: none has started until this time, monotonic seconds.
    """
    from adaptor.daemon.jobs.record import following, read_jobs

    if (jobs := read_jobs(state_directory())) is None:
        return False
    click.echo(f"adaptor: no daemon runs now: {following(jobs)}", err=True)
    while _view() is None:
        if time.monotonic() > until:
            raise NoDaemonError(asking.no_daemon_text(state_directory()))
        time.sleep(_LOOK)
    return True


def find_daemon() -> DaemonView | None:
    """The daemon, whatever its version; None: none runs. One that is starting or ending is waited for.

    Raises NoAnswerError: one lives, and does not answer.
    """
    settling, starting = asking.Outage(asking.SETTLING), asking.Outage(say=partial(click.echo, err=True))
    while True:
        try:
            return asking.ask(api.GetDaemon())
        except (asking.HungDaemonError, asking.LeavingDaemonError) as silence:
            outage = starting if isinstance(silence, asking.StartingDaemonError) else settling
            time.sleep(outage.pause(silence))
        except NoDaemonError:
            return None


def ask_daemon(question: api.Question[A], config: str | None, timeout: float = asking.ANSWER_TIMEOUT) -> A:
    """Ask a question; if no daemon runs, start one that stays, and say so.

    Raises AdaptorError: no daemon could be started, or the question could not be served.
    """
    answer, started = with_daemon(config, lambda client: client.ask(question, timeout))
    if started:
        tell_started()
    return answer


def submit_bag(
    bag: api.BagInput, config: str | None, *, open: bool = False, resume: bool = False
) -> api.Submitted:
    """Submit a bag, as `Client.submit` does; if no daemon runs, start one that stays, and say so."""
    answer, started = with_daemon(
        config,
        lambda client: client.submit(bag, open=open, resume=resume),
        sites=bag.spec.sites,
    )
    if started:
        tell_started()
    return answer


def with_daemon(
    config: str | None,
    ask: Callable[[Client], T],
    *,
    sites: Collection[str] | None = None,
    until_idle: bool = False,
) -> tuple[T, bool]:
    """The result of `ask`, and True if a daemon had to be started, as `ensure_daemon` does; says nothing."""
    started = ensure_daemon(config, until_idle, sites=sites)

    def again() -> None:
        nonlocal started
        started = ensure_daemon(config, until_idle) or started

    with Client(start=again, say=partial(click.echo, err=True)) as client:
        return ask(client), started


_LOOK = 0.5  # seconds between two looks whether the job of the daemon has started
RELOAD_TIMEOUT = 180.0  # seconds for all schedulers to answer, and then for the daemon to be back


def reload_daemon(config: str | None = None) -> api.Reloading | None:
    """Have the daemon load its edited configuration, and wait until it uses it; the process stays.

    None: no daemon of this version runs, it has another file than `config`, or its file was not edited.

    Raises AdaptorError: the configuration cannot be used; the daemon keeps the old one.
    """
    daemon = None
    with contextlib.suppress(AccessError, asking.OtherVersionError):
        daemon = find_daemon()
    if daemon is None or daemon.version != __version__ or _other_file(daemon, config):
        return None
    if _config_now(daemon)[1] == daemon.config_digest:  # not edited, and not gone
        return None
    found = asking.ask(api.Reload(), RELOAD_TIMEOUT)

    def back() -> bool:
        view = _view()
        if view is not None and view.config_problem:
            raise AdaptorError(f"{view.config_problem}; the configuration before it goes on")
        return view is not None and view.config_digest == found.digest

    if found.any:
        problem = "the daemon did not come back; see daemon.log in its state directory"
        _wait_until(back, RELOAD_TIMEOUT, problem)
    return found


def _view() -> DaemonView | None:
    """The daemon, if it answers now."""
    with contextlib.suppress(NoDaemonError, asking.NoAnswerError):
        return asking.ask(api.GetDaemon())
    return None


def _wait_until(done: Callable[[], bool], seconds: float, problem: str) -> None:
    """Wait until `done` returns True. Raises AdaptorError with the problem: that takes longer than
    `seconds`."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise AdaptorError(problem)
        time.sleep(0.05)


def tell_started() -> None:
    """Say that a daemon was started and stays."""
    click.echo("adaptor: started a daemon (stop it with: adaptor daemon stop)", err=True)


def stop_for_good(*, pilots: bool, force: bool) -> tuple[int | None, list[str]]:
    """Stop the daemon as the command does: its process id, and the jobs of it that were cancelled.

    Raises AdaptorError: as `stop_daemon` and `end_daemon`; or the jobs cannot be cancelled now.
    """
    from adaptor.daemon.jobs.record import forget_jobs, read_jobs

    directory, jobs = state_directory(), None
    with contextlib.suppress(AdaptorError):  # a damaged record goes, too
        jobs = read_jobs(directory)
    if jobs is not None:
        asking.check_own_key("stop the daemon")
    if jobs is None or force:
        forget_jobs(directory)
    if jobs is None:
        return (end_daemon(force=True) if force else stop_daemon(pilots)), []
    from adaptor.cli.operating.daemon_submit import end_jobs

    pid = None if force else stop_daemon(pilots, last=lambda: forget_jobs(directory))
    forget_jobs(directory)
    try:
        cancelled = end_jobs(jobs)
    except AdaptorError as problem:
        raise AdaptorError(
            f"the daemon's jobs cannot be cancelled now ({problem}): each ends by itself when it starts"
        ) from problem
    forget_jobs(directory)  # once more: a job that was just starting may have written it
    return pid, cancelled


STOP_TIMEOUT = 60.0  # seconds for a daemon to end; a slow scheduler may take long to cancel its pilots


def stop_daemon(pilots: bool, last: Callable[[], None] = lambda: None) -> int | None:
    """Stop the daemon (`pilots`: with its pilots), whatever its version, and wait until it has ended.

    Returns its process id; None: none runs. `last` is called once it has been asked to end.

    Raises AdaptorError: it does not answer, or does not end.
    """
    try:
        daemon = find_daemon()
        if daemon is None:
            return None
        asking.ask(api.Stop(pilots=pilots))
        last()
    except (AccessError, asking.OtherVersionError):  # of a time before `adaptor/api/frozen.py`, or damaged
        if pilots:
            raise
        return end_daemon(force=False)
    pid, local = daemon.pid, daemon.host == socket.gethostname()
    _wait_until(
        lambda: not _process_runs(pid) if local else _view() is None,
        STOP_TIMEOUT,
        _does_not_end(f"process {pid} on {daemon.host}"),
    )
    return pid


def _does_not_end(who: str) -> str:
    return f"the daemon ({who}) does not end; it still runs after {STOP_TIMEOUT:g} s"


def check_restart() -> None:
    """Check that a restart can succeed. Raises AdaptorError: this version or key cannot take the state
    over."""
    asking.check_own_key("restart the daemon")
    from adaptor.daemon.ground.takeover import check_takeover

    directory = state_directory()
    try:
        check_takeover(directory)
    except AdaptorError as problem:
        raise AdaptorError(f"{problem}. Nothing was stopped") from problem


def restart_daemon(config: str | None, *, drop_sites: bool = False) -> bool:
    """Stop the daemon, whatever its version, and start one of this version with the same configuration.

    Its pilots go on. A daemon that was started to end with its bags is followed by one that does, too.

    Args:
        config: the configuration in place of the last one.
        drop_sites: as `ensure_daemon` has it.

    Returns whether one was running.

    Raises AdaptorError: the configuration cannot be used, so that the daemon goes on; the daemon runs on
    another machine, or does not end; none can be started.
    """
    from adaptor.config.loading import config_path, goes_on_with, load_config
    from adaptor.daemon.jobs.record import read_jobs

    daemon = None
    with contextlib.suppress(AccessError, asking.OtherVersionError):
        daemon = find_daemon()
    if (jobs := read_jobs(state_directory())) is not None and daemon is not None:
        return _restart_in_job(daemon, jobs.config, config)
    if daemon is not None and daemon.host != socket.gethostname():
        raise AdaptorError(f"the daemon runs on {daemon.host}: run `adaptor daemon restart` there")
    if config is None and daemon is not None and daemon.config_file:
        last = Path(daemon.config_file)
        config = None if goes_on_with(last, config_path()) else str(last)
    load_config(config_path(config))  # before the daemon ends
    try:
        stopped = stop_daemon(pilots=False) is not None
        ensure_daemon(config, daemon is not None and daemon.until_idle, drop_sites=drop_sites)
    except KeyboardInterrupt:
        click.echo("adaptor: no daemon may be running now; pilots go on: adaptor daemon start", err=True)
        raise
    return stopped


def _restart_in_job(daemon: DaemonView, submitted_with: str, config: str | None) -> bool:
    """End a daemon that a job runs; the job starts the next one, of the version that is installed by now.

    Raises:
        UsageError: the job was submitted with another configuration.
        AdaptorError: the next one does not answer.
    """
    if config is not None and config != submitted_with:
        raise UsageError(
            "a job runs the daemon; to name its configuration: adaptor daemon stop, adaptor daemon submit"
        )
    asking.ask(api.Stop())
    now: DaemonView | None = None

    def other() -> bool:
        nonlocal now
        now = _view()
        return now is not None and (now.host, now.pid, now.started) != (
            daemon.host,
            daemon.pid,
            daemon.started,
        )

    _wait_until(other, RELOAD_TIMEOUT, "the daemon did not come back; see daemon.log in its state directory")
    return True


def _process_runs(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        # A private daemon is our own child: it stays in the process table until we wait for it.
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # The number belongs to someone else by now.
        return False
    return True


FORCED_GRACE = 10.0  # seconds for a daemon to end by itself after SIGTERM; `kill -9` loses nothing either


def end_daemon(*, force: bool) -> int | None:
    """End the process that holds the lock, whether it answers or not; its process id; None: the lock is free.

    By SIGTERM; `force`: then by SIGKILL. Pilots and tasks go on, and the next daemon continues from the
    journal.

    Raises AdaptorError: it is on another machine, is not known by more than its process id, or does not end.
    """
    asking.check_own_key("end the daemon")
    from adaptor.daemon.lock import holder_of  # loads psutil
    from adaptor.processes.trees import send, wait_for_death

    holder = holder_of(state_directory())
    if holder is None:
        return None
    process = holder.process()
    if process is None:
        if holder_of(state_directory()) is None:
            return None
        raise AdaptorError(
            f"the lock of {state_directory()} is held by {holder}, which is no process of this machine,"
            f" {socket.gethostname()}: run `adaptor daemon stop --force` there"
        )
    # A stopped process gets SIGTERM only when it is continued.
    for number in (signal.SIGTERM, signal.SIGCONT):
        send(process, number)
    if not wait_for_death([process], time.monotonic() + (FORCED_GRACE if force else STOP_TIMEOUT)):
        if not force:
            raise AdaptorError(_does_not_end(str(holder)))
        send(process, signal.SIGKILL)
        if not wait_for_death([process], time.monotonic() + FORCED_GRACE):
            raise AdaptorError(
                f"the daemon ({holder}) does not end, not even by SIGKILL: its file system hangs"
            )
    return holder.pid


def daemon_lines(daemon: api.DaemonView) -> list[str]:
    """Lines on the running daemon, of any version."""
    who = f"daemon on {daemon.host} (process {daemon.pid}), version {printable(daemon.version)}"
    unfinished = "" if daemon.unfinished is None else f", {plural(daemon.unfinished, 'unfinished bag')}"
    return [
        f"{who}, {plural(daemon.workers, 'worker')}{unfinished}",
        f"since {clock(daemon.started)}, state in {printable(daemon.state_directory)}",
    ]


def version_lines(daemon: api.DaemonView) -> list[str]:
    """Advice about a daemon of another version; empty: it has that of this command."""
    if daemon.version == __version__:
        return []
    return [
        f"it has version {printable(daemon.version)}, this command {__version__}; to go on with this one:"
        " adaptor daemon restart"
    ]


def config_lines(daemon: api.DaemonView, *, only_problems: bool = False) -> list[str]:
    """Lines on the configuration: its path, whether it was edited, and why a reload failed.

    The command line looks, not the daemon: the file may lie on a file system that hangs.
    """
    lines = []
    path, digest = _config_now(daemon)
    name = printable(str(path))
    if daemon.config_file and not digest:
        lines.append(f"cannot read configuration {name}; the daemon keeps what it loaded")
    elif digest != daemon.config_digest:
        what = "has changed since it was loaded" if daemon.config_file else "is new"
        lines.append(f"configuration {name} {what}; take it over: adaptor daemon restart")
    elif not only_problems:
        lines.append(f"configuration {name if daemon.config_file else 'none: this machine is the only site'}")
    if daemon.config_problem:
        lines.append(f"the last reload failed: {printable(daemon.config_problem)}")
    return lines


def _other_file(daemon: api.DaemonView, config: str | None) -> bool:
    """True if `config` names another configuration than the daemon has; None names none."""
    return config is not None and str(Path(config).absolute()) != daemon.config_file


def _config_now(daemon: api.DaemonView) -> tuple[Path, str]:
    """The file of its configuration, or where one would be; and the digest of what it holds now."""
    from adaptor.config.loading import SITES, default_config_path, digest_of

    path = default_config_path()
    if daemon.config_file and not (daemon.config_file == str(SITES) and path.is_file()):
        path = Path(daemon.config_file)
    return path, digest_of(path)
