"""Questions that need a daemon: one is started where none runs."""

from __future__ import annotations

from typing import TypeVar

import click
import msgspec

from adaptor.cli.client import ANSWER_TIMEOUT, NoAnswerError, ask
from adaptor.errors import NoDaemonError
from adaptor.protocol import control
from adaptor.protocol.state_directory import state_directory

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


def ensure_daemon(config: str | None, until_idle: bool = False) -> bool:
    """Whether one had to be started. `until_idle`: it ends by itself when no bag is left to do.

    Raises:
        AdaptorError: it could not be started.
    """
    try:
        ask(control.GetDaemon(), control.Daemon)
    except NoAnswerError:
        raise
    except NoDaemonError:
        from adaptor.daemon.process import start

        start(state_directory(), config, until_idle=until_idle)
        return True
    if config is not None:
        click.echo("adaptor: the running daemon keeps its own configuration; --config does nothing", err=True)
    return False


def ask_daemon(
    question: control.Question,
    kind: type[_Kind],
    config: str | None,
    until_idle: bool = False,
    timeout: float = ANSWER_TIMEOUT,
) -> tuple[_Kind, bool]:
    """As `ask`, and whether a daemon had to be started for it, as by `ensure_daemon`.

    Raises:
        AdaptorError: none could be started, or the question could not be served.
    """
    started = ensure_daemon(config, until_idle)
    try:
        return ask(question, kind, timeout), started
    except NoAnswerError:
        raise
    except NoDaemonError:
        # A private daemon was just leaving. It was not reached, so the question was not put yet.
        started = ensure_daemon(config, until_idle)
        return ask(question, kind, timeout), started


def tell_started() -> None:
    """That a daemon was started which stays."""
    click.echo("adaptor: no daemon was running: started one (adaptor daemon stop ends it)", err=True)
