"""One question, one answer; and every way in which a daemon is not there."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import pytest

from adaptor import api
from adaptor.cli.daemon_process import find_daemon
from adaptor.client import asking as client
from adaptor.client.asking import NoAnswerError, UnreachableDaemonError, ask
from adaptor.daemon.lock import Holder
from adaptor.errors import AdaptorError, NoDaemonError, UsageError
from adaptor.protocol.access import CLIENT_ACCESS, read_access, write_access
from adaptor.protocol.keys import new_identity
from tests.cli.invoking import Serve


def test_a_question_is_answered_behind_an_address_that_refuses(serve: Serve) -> None:
    server = serve({api.Cancel: 5})
    assert ask(api.Cancel([1, 2])) == 5
    assert server.questions == [api.Cancel([1, 2])]


def test_no_access_file_means_no_daemon() -> None:
    with pytest.raises(NoDaemonError, match="adaptor daemon start"):
        ask(api.GetDaemon())


def test_a_daemon_that_was_killed(serve: Serve) -> None:
    serve({}).close()
    with pytest.raises(NoDaemonError):
        ask(api.GetDaemon())


def test_a_daemon_on_another_login_node_is_named(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock, on a shared file system, says who holds it; nothing at its addresses answers here."""
    serve({}).close()
    monkeypatch.setattr("adaptor.client.asking._holder", lambda _directory: Holder("login1", "boot", 4711, 1))
    with pytest.raises(UnreachableDaemonError, match="the daemon on login1 cannot be reached from here"):
        ask(api.GetDaemon())
    with pytest.raises(UnreachableDaemonError):
        find_daemon()


def test_failures_are_errors_with_their_message(serve: Serve) -> None:
    server = serve({api.GetReport: api.Failure("there is no bag 9", usage=True)})
    with pytest.raises(UsageError, match="there is no bag 9"):
        ask(api.GetReport(9))
    server.answers[api.GetReport] = api.Failure("disk full")
    with pytest.raises(AdaptorError, match="disk full") as caught:
        ask(api.GetReport(9))
    assert caught.value.exit_code == 1


def test_a_silent_daemon_is_told_from_none(serve: Serve) -> None:
    serve({api.GetSites: None})
    with pytest.raises(NoAnswerError, match="did not answer"):
        ask(api.GetSites(), timeout=0.05)


def test_a_daemon_that_leaves_with_the_question_is_not_waited_for(serve: Serve) -> None:
    server = serve({})
    server.answers[api.Cancel] = lambda _: server.leave()
    with pytest.raises(NoAnswerError, match="disconnected before it answered"):
        ask(api.Cancel([1]), timeout=60)


def test_a_daemon_that_begins_anew_is_asked_once_more(serve: Serve) -> None:
    server = serve({})

    def leave(_: api.GetSites) -> None:
        serve({api.GetSites: []})
        server.leave()

    server.answers[api.GetSites] = leave
    assert ask(api.GetSites(), timeout=60) == []


@pytest.mark.parametrize("answer", [b"\xc1nonsense", api.Bags([])])
def test_nonsense_is_an_error(serve: Serve, answer: object) -> None:
    serve({api.GetSites: answer})
    with pytest.raises(AdaptorError, match="it may have another version"):
        ask(api.GetSites())


def test_a_stranger_at_the_old_address_is_no_daemon(
    serve: Serve, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "HANDSHAKE_TIMEOUT", 0.2)
    server = serve({})
    access = read_access(state / CLIENT_ACCESS)
    another = new_identity("server").certificate
    write_access(state / CLIENT_ACCESS, msgspec.structs.replace(access, server=another))
    with pytest.raises(NoDaemonError):
        ask(api.GetDaemon())
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        write_access(state / CLIENT_ACCESS, msgspec.structs.replace(access, addresses=(address,)))
        with pytest.raises(NoDaemonError):
            ask(api.GetDaemon())
    assert server.questions == []


def test_an_access_file_that_others_can_read_is_refused(serve: Serve, state: Path) -> None:
    serve({})
    (state / CLIENT_ACCESS).chmod(0o640)
    with pytest.raises(AdaptorError, match="chmod 600"):
        ask(api.GetDaemon())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1", "nonsense", "tcp://no.such.host.invalid:5"])
def test_bad_addresses_are_passed_over(serve: Serve, state: Path, address: str) -> None:
    serve({})
    access = read_access(state / CLIENT_ACCESS)
    both = (address, *access.addresses)
    write_access(state / CLIENT_ACCESS, msgspec.structs.replace(access, addresses=both))
    assert ask(api.GetDaemon()).workers == 2
