"""`adaptor daemon install`: have the daemon started again after a crash or a reboot."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from adaptor import __version__, api
from adaptor.cli.daemon_process import find_daemon, stop_daemon
from adaptor.cli.options import config_option, confirm
from adaptor.cli.printing import print_lines, printable
from adaptor.client.asking import NoAnswerError, OtherVersionError, Outage, ask, check_own_key
from adaptor.config.loading import SITES, config_path, load_config
from adaptor.errors import AdaptorError, NoDaemonError, UsageError
from adaptor.private_files import write_private
from adaptor.processes.commands import module_command
from adaptor.protocol.access import AccessError
from adaptor.protocol.state_directory import state_directory

_INHERITED = ("PATH", "LD_LIBRARY_PATH", "SLURM_CONF", "PBS_CONF_FILE", "PBS_SERVER")
"""Variables of this shell with which the scheduler's commands are found; a service gets none by itself."""


class ServiceUnit(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    program: tuple[str, ...]  # the command line up to `daemon`
    environment: Mapping[str, str]
    host: str


def service_name() -> str:
    """Name of the systemd unit for this state directory."""
    if os.environ.get("ADAPTOR_DIR"):  # one of several
        return f"adaptor-{hashlib.sha256(str(state_directory()).encode()).hexdigest()[:8]}"
    return "adaptor"


def this_service(config: str | None) -> ServiceUnit:
    """The daemon of this state directory, with this configuration, on this machine.

    Raises UsageError: a path or a variable cannot be written into a unit or a crontab.
    """
    environment = {"ADAPTOR_DIR": str(state_directory())}
    environment |= {name: os.environ[name] for name in _INHERITED if os.environ.get(name)}
    script = Path(sys.executable).with_name("adaptor")
    program = (str(script),) if script.exists() else module_command(sys.executable, "adaptor.cli")
    if config is not None:
        program += ("--config", config)
    for text in (*program, *environment.values()):
        if not text.isprintable():
            raise UsageError(f"{text!r} cannot be written into a unit or a crontab: it is not printable")
    return ServiceUnit(
        name=service_name(), program=program, environment=environment, host=socket.gethostname()
    )


def unit(service: ServiceUnit) -> str:
    """The text of a systemd user unit.

    It holds for one host, since login nodes share home directories. Only the daemon itself is ended with it:
    pilots of a local site go on.
    """
    variables = "".join(
        f"Environment={_quoted(f'{name}={value}')}\n" for name, value in service.environment.items()
    )
    command = " ".join(_quoted(word).replace("$", "$$") for word in (*service.program, "daemon", "run"))
    return f"""\
[Unit]
Description=The request adaptor's daemon
ConditionHost={service.host}
StartLimitIntervalSec=600
StartLimitBurst=10

[Service]
Type=exec
{variables}ExecStart={command}
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=2
KillMode=process
TimeoutStopSec=60

[Install]
WantedBy=default.target
"""


def _quoted(text: str) -> str:
    r"""The text quoted as in systemd.syntax(7); `%` begins a specifier, `"` and `\` have a meaning inside of
    quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def cron_line(service: ServiceUnit) -> str:
    """Line for a crontab that starts the daemon after a reboot. cron takes `%` for the end of a line."""
    variables = (f"{name}={value}" for name, value in service.environment.items())
    command = shlex.join(["env", *variables, *service.program, "daemon", "start"])
    return f"@reboot {command} >/dev/null 2>&1".replace("%", "\\%")


@click.command(short_help="Have the daemon started again after a reboot.")
@click.option("--remove", is_flag=True, help="Remove the service.")
@click.option("--show", is_flag=True, help="Only show what would be done.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
def install(remove: bool, show: bool, yes: bool, config: str | None) -> None:
    """Have the daemon started again after a crash or a reboot, by systemd.

    Shows all that it writes and runs before it does it. Where systemd has no user instance, it
    prints a line for your crontab instead.

    \b
    Examples:
      adaptor daemon install --config ~/cluster.yaml
      adaptor daemon install --remove
    """
    check_own_key("install a daemon")
    path = config_path(config)
    if path is not None:
        load_config(path)  # a mistake in it is better told here than in a log
    # The file of the operator is found without a name, and so is one of the user that adds to it later.
    service = this_service(None if path in (None, SITES) else str(path.resolve()))
    chosen = Systemd(service)
    if not show and (missing := chosen.missing()):
        raise AdaptorError(f"{missing}; put this line into your crontab (crontab -e): {cron_line(service)}")
    steps = chosen.remove() if remove else _install(chosen)
    for step in steps:
        click.echo("\n".join(map(printable, step.told.splitlines())))
    if not show:
        if not yes:
            confirm("do this?")
        if not remove:
            stop_daemon(False)  # one that was started by hand; its pilots go on
        for step in steps:
            step.do()
    if remove:
        return
    if not show:
        view = _answering(service.name)
        click.echo(f"daemon on {view.host} (process {view.pid}) runs under systemd")
    print_lines(chosen.remarks())


def _install(chosen: Systemd) -> list[InstallStep]:
    """Install the service. Raises UsageError: a job runs the daemon."""
    from adaptor.daemon.jobs.record import check_no_job

    check_no_job(state_directory(), "install a service")
    return chosen.install()


def _answering(unit: str) -> api.DaemonView:
    """The daemon that systemd has just started. Raises AdaptorError: it does not answer."""
    try:
        return Outage(was_there=True).wait_out(lambda: ask(api.GetDaemon()))
    except (NoDaemonError, NoAnswerError) as error:
        raise AdaptorError(
            f"the daemon does not answer ({error}); see: journalctl --user -u {unit}, or daemon.log"
        ) from error


def restart_service(named: bool) -> bool:
    """Restart the unit of systemd in which the daemon runs; False: it runs in none.

    `named`: whether the command names a configuration, or drops sites.

    Raises:
        AdaptorError: the unit's file starts another version, or its daemon does not answer.
        UsageError: the unit's file says how the daemon is started.
    """
    daemon, unit = None, service_name()
    with contextlib.suppress(AccessError, OtherVersionError):
        daemon = find_daemon()
    if daemon is None or daemon.host != socket.gethostname() or _unit_of(daemon.pid) != unit:
        return False
    if named:
        raise UsageError(
            f"systemd starts the daemon ({unit}): name its configuration by: adaptor daemon install"
        )
    _ask(["systemctl", "--user", "restart", unit])
    version = _answering(unit).version
    if version != __version__:
        raise AdaptorError(
            f"systemd has started version {version}, as {unit}.service says; to have it start version"
            f" {__version__}: adaptor daemon install"
        )
    return True


def _unit_of(pid: int) -> str:
    """The unit of systemd's user instance in which a process runs; empty: it runs in none."""
    with contextlib.suppress(OSError):
        return unit_in(Path(f"/proc/{pid}/cgroup").read_text())
    return ""


def unit_in(cgroups: str) -> str:
    """The unit of systemd's user instance, from the text of /proc/PID/cgroup; empty: none."""
    for line in cgroups.splitlines():
        parts = line.rpartition(":")[2].split("/")
        if any(part.startswith("user@") for part in parts[:-1]) and parts[-1].endswith(".service"):
            return parts[-1].removesuffix(".service")
    return ""


_TIMEOUT = 60.0  # seconds for a command
_LINGERING = Path("/var/lib/systemd/linger")


class InstallStep(msgspec.Struct, frozen=True):
    """One thing that is done, in words and in deed."""

    told: str
    do: Callable[[], object]


class Systemd:
    def __init__(self, service: ServiceUnit) -> None:
        self._service = service
        base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        self._path = Path(base).expanduser() / "systemd" / "user" / f"{service.name}.service"

    def missing(self) -> str:
        """Why it cannot be used here; empty: it can."""
        try:
            _ask(["systemctl", "--user", "show-environment"])
        except AdaptorError as error:
            return f"systemd runs no user instance here ({error})"
        return ""

    def install(self) -> list[InstallStep]:
        text = unit(self._service)
        return [
            InstallStep(f"write {self._path}:\n\n{text}", lambda: self._write(text)),
            _command("systemctl", "--user", "daemon-reload"),
            _command("systemctl", "--user", "enable", self._path.name),
            _command("systemctl", "--user", "restart", self._path.name),
        ]

    def remove(self) -> list[InstallStep]:
        return [
            _command("systemctl", "--user", "disable", "--now", self._path.name),
            InstallStep(f"remove {self._path}", lambda: self._path.unlink(missing_ok=True)),
            _command("systemctl", "--user", "daemon-reload"),
        ]

    def remarks(self) -> list[str]:
        """A note on what is left to the user, with the way out."""
        if lingers():
            return ["lingering is on: the daemon outlives your logout, and starts with the machine"]
        return [
            "lingering is off: systemd ends the daemon when you log out, and does not start it with the "
            "machine. Switch it on: loginctl enable-linger (if that is refused, ask an administrator "
            f"for: loginctl enable-linger {getpass.getuser()})"
        ]

    def _write(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_private(self._path, text.encode())


def lingers() -> bool:
    """True if processes of this user outlive the logout."""
    user = getpass.getuser()
    try:
        told = _run(["loginctl", "show-user", user, "--property=Linger", "--value"])
    except AdaptorError:
        return (_LINGERING / user).exists()
    return told.stdout.strip() == "yes" if told.returncode == 0 else (_LINGERING / user).exists()


def _command(*arguments: str) -> InstallStep:
    return InstallStep(f"run {' '.join(arguments)}", lambda: _ask(list(arguments)))


def _ask(arguments: Sequence[str], given: str = "") -> None:
    """Run a command of systemd. Raises AdaptorError: the command fails."""
    done = _run(arguments, given)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise AdaptorError(f"{' '.join(arguments)} failed: {said[-1] if said else done.returncode}")


def _run(arguments: Sequence[str], given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command; return its result. Raises AdaptorError: it cannot be run, or hangs."""
    try:
        return subprocess.run(
            arguments, input=given, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AdaptorError(f"{arguments[0]} cannot be run: {error}") from error
