"""YAML site configuration to typed objects; errors name the file, the line and the key."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any, Literal, NoReturn

import msgspec

from adaptor.config.budget import BudgetConfig, PriceConfig, check_costs
from adaptor.config.donation import DonationConfig, check_donation
from adaptor.config.registered import BackendFacts, load_backend
from adaptor.config.ssh import SshConfig, check_environment, check_ssh
from adaptor.config.yaml_lines import Fail, Lines, read_yaml
from adaptor.errors import ConfigError
from adaptor.units import Duration as Duration
from adaptor.units import parse_duration


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is left out is asked of the scheduler."""

    max_pending_requests: int | None = None
    max_proc: int | None = None
    max_tr: Duration | None = None


class SiteConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One space-shared resource reached through one batch scheduler."""

    backend: str
    """A type of batch scheduler that is installed (`adaptor.config.registered`)."""
    dialect: str | None = None
    """Of a scheduler that has several; None: told by its version."""
    partition: str | None = None
    """PBS: the queue."""
    account: str | None = None
    qos: str | None = None
    extra_args: tuple[str, ...] = ()
    """Arguments for the submit command, verbatim."""
    prologue: str = ""
    """Shell lines that each pilot runs before its workers, for instance `module load …`."""
    python: str | None = None
    """The interpreter for the workers where the daemon's own is not to be found on the nodes."""
    ssh: SshConfig | None = None
    """Of a distant site: how its login node is reached; None: the scheduler answers here."""
    environment: dict[str, str] = {}
    """Variables for the scheduler's commands, for instance `SLURM_CONF` or `PATH`."""
    limits: LimitsConfig = LimitsConfig()
    heuristic: Literal["static", "adaptive"] = "adaptive"
    initial_tr: Duration = Duration(3600)
    """The runtime assumed of a task before any has finished (De Rose §4.4: one hour)."""
    growth_factor: int = 2
    """What tr is multiplied by when it was not enough (De Rose §4.3.1: an integer factor)."""
    pad: Duration = Duration(30)
    """Added to tr for the start-up of a pilot and the end of its tasks."""
    idle_timeout: Duration = Duration(60)
    """How long a worker without work keeps its node."""
    spool: str | None = None
    """A private folder that this machine and the nodes share, where no node can connect to this machine."""
    processors_per_node: int | None = None
    processors: int | None = None
    """Processors of a local site; None: all of this machine."""
    whole_nodes: bool = False
    """Whether a request always gets whole nodes."""
    shrink_to_fit: float | None = None
    """OpenPBS: the share of tr with which a request is content where a hole turns out shorter; None: all."""
    poll_interval: Duration | None = None
    """How often the queue is read; None: the backend's own choice."""
    command_timeout: Duration = Duration(30)
    """How long a scheduler command may take."""
    grace_time: Duration = Duration(10)
    """How long a worker that is told to leave has for ending its tasks."""
    price: PriceConfig = PriceConfig()
    charging_unit: Duration = Duration(1)
    """The time step that is billed, 1 s to 1 h; a begun one counts whole."""
    overrun: Duration | None = None
    """How long the scheduler may let a pilot run beyond tr; it is reserved too. None: by backend."""
    budget: BudgetConfig | None = None
    """What all bags together may spend here; None: it is only counted."""
    donation: DonationConfig | None = None
    """How idle nodes are lent; None: they are not."""


class DaemonConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    host: str | None = None
    """The address by which workers reach this machine; None: its names and addresses are tried in turn."""
    port: int = 0
    """The port for workers; 0: a free one, kept over restarts."""
    worker_timeout: Duration = Duration(30)
    """A worker silent for so long is lost."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sites: dict[str, SiteConfig]
    daemon: DaemonConfig = DaemonConfig()


BUILT_IN = Config(
    sites={
        "local": SiteConfig(
            backend="local",
            initial_tr=Duration(600),
            pad=Duration(10),
            idle_timeout=Duration(10),
        )
    }
)
"""Serves where there is no configuration file."""


def config_path(option: str | None = None) -> Path | None:
    """The file that counts: `--config`, `$ADAPTOR_CONFIG`, then the XDG place; None where there is none.

    Raises:
        ConfigError: a file that was named does not exist.
    """
    for named, how in ((option, "--config"), (os.environ.get("ADAPTOR_CONFIG"), "$ADAPTOR_CONFIG")):
        if named:
            path = Path(named).expanduser()
            if not path.is_file():
                raise ConfigError(f"{path}: no such file (given by {how})")
            return path
    path = default_config_path()
    return path if path.is_file() else None


def default_config_path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "adaptor" / "config.yaml"


def load_config(path: Path | None) -> Config:
    """The configuration of a file, or the built-in local site.

    Raises:
        ConfigError: the file is unreadable, not YAML, or says something that we do not understand.
    """
    if path is None:
        return BUILT_IN
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return parse_config(text, str(path))


def parse_config(text: str, name: str) -> Config:
    """As `load_config`, from text; `name` stands for the file in errors."""
    lines, data = read_yaml(text, name)
    try:
        config = msgspec.convert(data, Config, dec_hook=_decode_duration)
    except msgspec.ValidationError as error:
        raise _located(_with_site(str(error), data), lines, name) from error
    _check(config, lines, name)
    return config


def _decode_duration(kind: type, value: Any) -> Any:
    if kind is Duration:
        return Duration(parse_duration(value))
    raise NotImplementedError(kind)


_AT = re.compile(r" - at (?P<key>`key` in )?`(?P<path>\$.*)`$")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<field>.*)`")


def _with_site(message: str, data: Any) -> str:
    """msgspec writes `[...]` for a key of a mapping; find the site that is meant."""
    if "`$.sites[...]" not in message:
        return message
    for site, raw in data["sites"].items():
        try:
            msgspec.convert(raw, SiteConfig, dec_hook=_decode_duration)
        except msgspec.ValidationError as error:
            problem, path = _split(str(error))
            return f"{problem} - at `$.sites.{site}{path[1:]}`"
    return message


def _split(message: str) -> tuple[str, str]:
    """What is wrong, and the path of the place."""
    at = _AT.search(message)
    if at is None:
        return message, "$"
    problem = "a key that is not text; put it in quotes" if at["key"] else message[: at.start()]
    return problem, at["path"]


def _located(message: str, lines: Lines, name: str) -> ConfigError:
    """A ConfigError with file and line for a message of msgspec, whose paths end in `$.a.b[0]`."""
    problem, path = _split(message)
    unknown = _UNKNOWN_FIELD.fullmatch(problem)
    if unknown:
        path = f"{path}.{unknown['field']}"
        problem = f"unknown key{_suggestion(path)}"
    return ConfigError(f"{name}:{lines.get(path, 1)}: {path[2:] or 'the file'}: {problem}")


_PARTS: dict[str, type[msgspec.Struct]] = {
    "ssh": SshConfig,
    "price": PriceConfig,
    "budget": BudgetConfig,
    "donation": DonationConfig,
}


def _suggestion(path: str) -> str:
    """` (did you mean …?)` for a mistyped key."""
    kinds: dict[int, type[msgspec.Struct]] = {1: Config, 3: SiteConfig, 4: LimitsConfig}
    parts = path.split(".")[1:]
    kind: type[msgspec.Struct] | None
    kind = DaemonConfig if parts[0] == "daemon" and len(parts) == 2 else kinds.get(len(parts))
    if len(parts) == 4:
        kind = _PARTS.get(parts[2], kind)
    near = difflib.get_close_matches(parts[-1], kind.__struct_fields__, n=1) if kind else []
    return f" (did you mean `{near[0]}`?)" if near else ""


def _check(config: Config, lines: Lines, name: str) -> None:
    """What types alone cannot say."""

    def fail(path: str, problem: str) -> NoReturn:
        raise ConfigError(f"{name}:{lines.get(path, lines.get('$.sites', 1))}: {path[2:]}: {problem}")

    if not config.sites:
        fail("$.sites", "at least one site is needed")
    for site_name, site in config.sites.items():
        at = f"$.sites.{site_name}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", site_name):
            fail(at, "a site's name is made of letters, digits, '-' and '_'")
        _check_site(site, at, fail)
    if not 0 <= config.daemon.port <= 65535:
        fail("$.daemon.port", f"must be from 0 to 65535, not {config.daemon.port}")
    if config.daemon.worker_timeout <= 0:
        fail("$.daemon.worker_timeout", f"must be more than 0, not {config.daemon.worker_timeout:g}")


def _check_site(site: SiteConfig, at: str, fail: Fail) -> None:
    backend = _check_backend(site, at, fail)
    for key, value in (
        ("limits.max_pending_requests", site.limits.max_pending_requests),
        ("limits.max_proc", site.limits.max_proc),
        ("limits.max_tr", site.limits.max_tr),
        ("initial_tr", site.initial_tr),
        ("processors_per_node", site.processors_per_node),
        ("processors", site.processors),
        ("poll_interval", site.poll_interval),
        ("command_timeout", site.command_timeout),
    ):
        if value is not None and value <= 0:
            fail(f"{at}.{key}", f"must be more than 0, not {value:g}")
    if site.growth_factor < 2:
        fail(f"{at}.growth_factor", f"must be an integer of 2 or more, not {site.growth_factor}")
    if site.shrink_to_fit is not None and not 0 < site.shrink_to_fit <= 1:
        fail(f"{at}.shrink_to_fit", f"must be more than 0 and at most 1, not {site.shrink_to_fit:g}")
    check_costs(site.price, site.charging_unit, site.budget, at, fail)
    _check_spool(site, at, fail)
    check_environment(site.environment, f"{at}.environment", fail)
    if site.ssh is not None:
        check_ssh(site.ssh, site.backend, backend.over_ssh, f"{at}.ssh", fail)
    if site.donation is not None:
        check_donation(site.donation, site.backend, backend.donation_modes, site.pad, f"{at}.donation", fail)
    max_tr = site.limits.max_tr
    if max_tr is not None and max_tr <= site.pad:
        fail(
            f"{at}.limits.max_tr",
            f"{max_tr:g} s leaves no time for a task: the pad alone takes {site.pad:g} s",
        )


def _check_backend(site: SiteConfig, at: str, fail: Fail) -> BackendFacts:
    try:
        backend = load_backend(site.backend)
    except ConfigError as error:
        fail(f"{at}.backend", str(error))
    if site.dialect is not None and site.dialect not in backend.dialects:
        known = ", ".join(backend.dialects) or "none"
        fail(f"{at}.dialect", f"backend {site.backend} has no dialect {site.dialect!r} (it has: {known})")
    return backend


def _check_spool(site: SiteConfig, at: str, fail: Fail) -> None:
    if site.spool is None:
        return
    if site.ssh is not None and site.ssh.link != "spool":
        fail(f"{at}.spool", f"is not used with ssh.link: {site.ssh.link}; write ssh.link: spool")
    if site.ssh is None and not Path(site.spool).expanduser().is_absolute():
        fail(f"{at}.spool", f"{site.spool!r} is not an absolute path")
