"""A login node is never computed on by accident."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

import adaptor as package
from adaptor import api
from adaptor.cli import login_node
from adaptor.cli.bags import submit as commands
from adaptor.cli.exit_codes import INTERRUPTED
from adaptor.cli.login_node import LoginNodeError, check_place
from adaptor.cli.main import program
from adaptor.config import loading
from adaptor.config.loading import default_config_path
from adaptor.daemon import process
from backends import registry
from tests.cli.fake_control import bag_view, daemon_view
from tests.cli.invoking import Cli, Serve

CLUSTER = "sites:\n  batch:\n    backend: slurm\n"


@pytest.fixture(autouse=True)
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login node of Slurm, on which no daemon may start."""
    monkeypatch.setattr(registry, "answering", lambda: "Slurm")
    monkeypatch.setattr(login_node.socket, "gethostname", lambda: "login1")
    monkeypatch.setattr(process, "start", lambda *_, **__: pytest.fail("a daemon was started"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ["submit", "run"])
def test_without_a_configuration_commands_refuse_with_two_ways_out(cli: Cli, command: str) -> None:
    outcome = cli(command, "--template", "true")
    assert outcome.code == 2
    assert "Slurm answers here, and there is no configuration" in outcome.err
    assert "login1" in outcome.err
    assert "adaptor site init" in outcome.err
    assert "--site local" in outcome.err


def test_the_sites_of_the_operator_are_a_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(loading, "SITES", tmp_path / "sites.yaml")
    monkeypatch.delenv("ADAPTOR_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("ADAPTOR_DIR", str(tmp_path / "state"))
    with pytest.raises(LoginNodeError):
        check_place(None, None, [])
    (tmp_path / "sites.yaml").write_text(CLUSTER)
    check_place(None, None, [])


def test_an_executor_refuses_too(cli: Cli) -> None:
    pytest.importorskip("cloudpickle")
    with pytest.raises(LoginNodeError, match="adaptor site init"):
        package.Executor()


@pytest.mark.parametrize(("sites", "refused"), [([], True), (["local"], False)])
def test_more_tasks_for_a_bag_start_no_daemon_here(
    cli: Cli, startable: list[Path], monkeypatch: pytest.MonkeyPatch, sites: list[str], refused: bool
) -> None:
    """Such a bag was opened with a configuration that is gone, or by `--site local`."""
    view = bag_view(state="open", sites=sites)
    monkeypatch.setattr(commands.Reader, "bag", lambda *_: view)
    outcome = cli("append", "7", "--template", "true")
    assert ("adaptor site init" in outcome.err, bool(startable)) == (refused, not refused)


def test_a_daemon_without_a_configuration_is_reloaded(cli: Cli, serve: Serve) -> None:
    serve({api.Publish: lambda _: pytest.fail("submitted")})
    default_config_path().parent.mkdir(parents=True)
    default_config_path().write_text(CLUSTER)
    outcome = cli("submit", "--template", "true")
    assert outcome.code == 2
    assert "the daemon runs without a configuration" in outcome.err
    assert "adaptor daemon restart" in outcome.err


def test_a_daemon_with_a_configuration_takes_the_bag(cli: Cli, serve: Serve) -> None:
    configured = msgspec.structs.replace(daemon_view(), config_file="/etc/adaptor.yaml")
    serve({api.GetDaemon: configured, api.Publish: api.Submitted(7)})
    outcome = cli("submit", "--template", "true")
    assert (outcome.code, outcome.err) == (0, "")


def test_a_site_that_is_named_is_used_and_said(cli: Cli, serve: Serve) -> None:
    serve({api.Publish: api.Submitted(7)})
    outcome = cli("submit", "--template", "true", "--site", "local")
    assert outcome.code == 0
    assert outcome.err == (
        "adaptor: Slurm answers here, and there is no configuration: tasks run on this machine (login1)\n"
    )


def test_a_machine_without_a_scheduler_is_unaffected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "answering", str)
    check_place(None, None, ())


def test_a_configuration_is_enough(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "answering", lambda: pytest.fail("the scheduler was asked"))
    check_place(None, str(tmp_path / "named.yaml"), ())
    default_config_path().parent.mkdir(parents=True)
    default_config_path().write_text(CLUSTER)
    check_place(None, None, ())


@pytest.fixture
def startable(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Which configurations daemons were started with."""
    started: list[Path] = []

    def start(directory: Path, config: str | None, until_idle: bool, **_: Any) -> None:
        started.append(default_config_path())
        view = msgspec.structs.replace(daemon_view(), config_file=str(default_config_path()))
        bags = api.Bags([bag_view()])
        serve({api.GetDaemon: view, api.Publish: api.Submitted(7), api.GetBags: bags, api.GetPilots: []})

    monkeypatch.setattr(process, "start", start)
    return started


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`run` on a terminal; what was typed there is the input."""
    monkeypatch.setattr(commands, "on_terminal", lambda: True)
    kind = next(each for each in registry.backend_types() if each.title == "Slurm")
    monkeypatch.setattr(type(kind), "describe_sites", lambda _: CLUSTER)
    return lambda typed: CliRunner().invoke(program, ["run", "--template", "true"], input=typed)


def test_run_on_a_terminal_offers_to_write_a_configuration(
    terminal: Callable[..., Any], startable: list[Path]
) -> None:
    outcome = terminal("y\n")
    assert outcome.exit_code == 0, outcome.output
    assert "Write a configuration for this cluster" in outcome.stderr
    assert default_config_path().read_text() == CLUSTER
    assert startable == [default_config_path()]


def test_who_says_no_gets_nothing(terminal: Callable[..., Any]) -> None:
    outcome = terminal("n\n")
    assert outcome.exit_code == INTERRUPTED
    assert not default_config_path().exists()
