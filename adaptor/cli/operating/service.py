"""What is to be started again, and the texts that tell systemd and cron so."""

from __future__ import annotations

import hashlib
import os
import shlex
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from adaptor.errors import UsageError
from adaptor.processes.python_commands import module_command
from adaptor.protocol.state_directory import state_directory

_INHERITED = ("PATH", "LD_LIBRARY_PATH", "SLURM_CONF", "PBS_CONF_FILE", "PBS_SERVER")
"""Variables of this shell with which the scheduler's commands are found; a service gets none by itself."""


class Service(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    program: tuple[str, ...]
    """The command line up to `daemon`."""
    environment: Mapping[str, str]
    host: str


def this_service(config: str | None) -> Service:
    """The daemon of this state directory, with this configuration, on this machine.

    Raises:
        UsageError: a path or a variable cannot be written into a unit or a crontab.
    """
    directory = state_directory()
    environment = {"ADAPTOR_DIR": str(directory)}
    environment |= {name: os.environ[name] for name in _INHERITED if os.environ.get(name)}
    name = "adaptor"
    if os.environ.get("ADAPTOR_DIR"):  # one of several
        name += f"-{hashlib.sha256(str(directory).encode()).hexdigest()[:8]}"
    script = Path(sys.executable).with_name("adaptor")
    program = (str(script),) if script.exists() else module_command(sys.executable, "adaptor.cli")
    if config is not None:
        program += ("--config", config)
    for text in (*program, *environment.values()):
        if not text.isprintable():
            raise UsageError(f"{text!r} cannot stand in a unit or a crontab: it is not printable")
    return Service(name=name, program=program, environment=environment, host=socket.gethostname())


def unit(service: Service) -> str:
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
    r"""As systemd.syntax(7) has it; `%` begins a specifier, `"` and `\` have a meaning inside of quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def cron_lines(service: Service) -> list[str]:
    """For the crontab of this host: start it after a reboot."""
    return [f"@reboot {_shell(service, 'start')} >/dev/null 2>&1"]


def scron_lines(service: Service, options: tuple[str, ...]) -> list[str]:
    """For Slurm's scrontab: a job in which the daemon runs, queued again when it has ended.

    `options`: of sbatch, for instance `-t 7-0`, `-q workflow`.
    """
    asked = [f"#SCRON {option}" for option in options]
    return [f"#SCRON --job-name={service.name}", *asked, f"*/10 * * * * {_shell(service, 'run')}"]


def _shell(service: Service, what: str) -> str:
    """One shell line in which cron sees no line end: `%` is one."""
    variables = (f"{name}={value}" for name, value in service.environment.items())
    return shlex.join(["env", *variables, *service.program, "daemon", what]).replace("%", "\\%")


def with_block(text: str, name: str, lines: list[str]) -> str:
    """A crontab with these lines in the place of those of the last time; none: without them."""
    begin, end = f"# begin {name} (written by `adaptor daemon install`)", f"# end {name}"
    kept, inside = [], False
    for line in text.splitlines():
        if line == begin:
            inside = True
        elif not inside:
            kept.append(line)
        elif line == end:
            inside = False
    block = [begin, *lines, end] if lines else []
    return "".join(f"{line}\n" for line in [*kept, *block])
