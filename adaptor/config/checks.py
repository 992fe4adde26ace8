"""Checks of a configuration that concern several keys, or need more than a range."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from adaptor.config.donation import check_donation
from adaptor.config.registered import BackendFacts, load_backend
from adaptor.config.schema import (
    BudgetConfig,
    Config,
    HooksConfig,
    LimitsConfig,
    NotifyConfig,
    PriceConfig,
    SiteConfig,
    SshConfig,
    sites_of,
)
from adaptor.config.yaml_lines import Fail, KeyLines
from adaptor.did_you_mean import did_you_mean
from adaptor.errors import ConfigError
from adaptor.option_kinds import SHELL


def failing(lines: KeyLines, name: str) -> Fail:
    """A function that raises ConfigError with file, line and key."""

    def fail(path: str, problem: str) -> NoReturn:
        raise ConfigError(f"{name}:{lines.get(path, lines.get('$.sites', 1))}: {path[2:]}: {problem}")

    return fail


def check(config: Config, lines: KeyLines, name: str) -> None:
    """Check what the type of one key alone cannot say.

    Raises:
        ConfigError: names file, line and key.
    """

    fail = failing(lines, name)
    if not config.sites:
        fail("$.sites", "at least one site is required")
    host = config.daemon.host
    if host is not None and not NAME.fullmatch(host):
        fail("$.daemon.host", f"{host!r} is not a name or an address")
    check_notices(config.notify, config.hooks, fail)
    for site_name, site in config.sites.items():
        at = f"$.sites.{site_name}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", site_name):
            fail(at, "the name of a site consists of letters, digits, '-' and '_'")
        _check_site(site, at, fail)
        for path, text in _texts(site, at):
            if not text.isprintable():
                fail(path, f"{text!r} is not printable text of one line")


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    """All texts below a value, with their paths, except those that may have several lines."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, tuple):
        for each in value:
            yield from _texts(each, path)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, f"{path}.{key}")
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            if field not in ("prologue", "environment"):
                yield from _texts(getattr(value, field), f"{path}.{field}")


def _check_site(site: SiteConfig, at: str, fail: Fail) -> None:
    backend = _check_backend(site, at, fail)
    check_partitions(site, backend.has_partitions, at, fail)
    check_costs(site.price, site.budget, at, fail)
    _check_spool(site, at, fail)
    if site.shell is not None:
        try:
            SHELL.parse(site.shell, 0.0)
        except ValueError as error:
            fail(f"{at}.shell", str(error))
    if site.node_folder is not None and not site.node_folder.startswith(("/", "$")):
        fail(
            f"{at}.node_folder", f"{site.node_folder!r} is not an absolute path, and begins with no variable"
        )
    if "\0" in site.prologue:
        fail(f"{at}.prologue", "a script cannot contain a NUL byte")
    check_environment(site.environment, f"{at}.environment", fail)
    if site.ssh is not None:
        check_ssh(site.ssh, site.backend, backend.over_ssh, f"{at}.ssh", fail)
    if site.donation is not None:
        check_donation(site.donation, site.backend, backend.donation_modes, site.pad, f"{at}.donation", fail)
    check_time(site.limits, site.pad, f"{at}.limits", fail)


def _check_backend(site: SiteConfig, at: str, fail: Fail) -> BackendFacts:
    try:
        backend = load_backend(site.backend)
    except ConfigError as error:
        fail(f"{at}.backend", str(error))
    for key, problem in backend.key_problems(site):
        fail(f"{at}.{key}", problem)
    return backend


def _check_spool(site: SiteConfig, at: str, fail: Fail) -> None:
    if site.spool is None:
        return
    if site.ssh is not None:
        _check_remote_path(site.spool, f"{at}.spool", fail)
    elif not Path(site.spool).expanduser().is_absolute():
        fail(f"{at}.spool", f"{site.spool!r} is not an absolute path")


def _check_remote_path(path: str, at: str, fail: Fail) -> None:
    if not path or path.startswith("~") or re.search(r"[\0\n]", path):
        fail(at, "must be a remote path, absolute or (without '~') below the home directory")


NAME = re.compile(r"[A-Za-z0-9_\[:.][A-Za-z0-9_\[\]:.%-]*")
"""Name of a machine or a user, or an address; no option of a command looks like it."""
_OURS = frozenset(
    {"controlmaster", "controlpath", "controlpersist", "batchmode", "remotecommand", "requesttty"}
)


def check_ssh(ssh: SshConfig, backend: str, over_ssh: bool, at: str, fail: Fail) -> None:
    """Check that ssh takes no part of it for an option, and that none leads somewhere else than it says.

    Args:
        backend: the site's type of batch scheduler.
        over_ssh: whether such a scheduler can be on another machine.
    """
    if not over_ssh:
        fail(at, f"backend {backend} is this machine; a remote site needs a batch scheduler")
    for key, value in (("host", ssh.host), ("user", ssh.user), ("address", ssh.address)):
        if value is not None and not NAME.fullmatch(value):
            fail(f"{at}.{key}", f"{value!r} is not a name")
    _check_remote_path(ssh.directory, f"{at}.directory", fail)
    for key, value in ssh.options.items():
        if not re.fullmatch(r"[A-Za-z0-9]+", key) or re.search(r"[\0\n]", value):
            fail(f"{at}.options.{key}", "is not a setting of ssh_config(5)")
        if key.lower() in _OURS:
            fail(f"{at}.options.{key}", "is set by the adaptor itself")


def check_environment(environment: Mapping[str, str], at: str, fail: Fail) -> None:
    """Check that a shell can set these variables."""
    for name, value in environment.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            fail(f"{at}.{name}", "the name of a variable consists of letters, digits and '_'")
        if "\0" in value:
            fail(f"{at}.{name}", "a variable cannot contain a NUL byte")


def check_notices(notify: NotifyConfig, hooks: HooksConfig, fail: Fail) -> None:
    """Check what the type of one key alone cannot say."""
    for name, channel in notify.channels.items():
        at = f"$.notify.channels.{name}"
        if not name.replace("-", "").replace("_", "").isalnum():
            fail(at, "the name of a channel consists of letters, digits, '-' and '_'")
        if (channel.url is None) == (channel.file is None):
            fail(at, "give either `url`, or `file`: a file of mode 0600 with one URL a line")
        if channel.url is not None and "://" not in channel.url:
            fail(f"{at}.url", "is no URL such as mailto://… or json://…")
    for name in notify.default:
        if name not in notify.channels:
            hint = did_you_mean(name, notify.channels, f"there are {', '.join(notify.channels) or 'none'}")
            fail("$.notify.default", f"there is no channel {name!r} ({hint})")
    if hooks.on_bag_end and "\0" in "".join(hooks.on_bag_end):
        fail("$.hooks.on_bag_end", "an argument cannot contain a NUL byte")


def check_costs(price: PriceConfig, budget: BudgetConfig | None, at: str, fail: Fail) -> None:
    """Check that donated time costs no more than explicit time, and that the time zone exists."""
    from adaptor.budget.accounting.periods import Calendar
    from adaptor.budget.errors import BudgetError

    if price.donated is not None and price.donated > price.explicit:
        fail(f"{at}.price.donated", f"{price.donated:g} is more than explicit, {price.explicit:g}")
    if budget is None:
        return
    try:
        Calendar("day", budget.zone)
    except BudgetError as error:
        fail(f"{at}.budget.zone", str(error))


def check_partitions(site: SiteConfig, allowed: bool, at: str, fail: Fail) -> None:
    """Check the partitions of a site; calls `fail` for errors. `allowed`: whether its backend may have
    partitions."""
    if allowed and site.partition is not None and "," in site.partition:
        each = ", ".join(f"{name.strip()}: {{}}" for name in site.partition.split(","))
        fail(f"{at}.partition", f"names several; write `partitions: {{{each}}}` instead")
    if not site.partitions:
        return
    if not allowed:
        fail(f"{at}.partitions", f"backend {site.backend} has no partitions")
    if site.partition is not None:
        fail(f"{at}.partition", "does not go with `partitions`; name it as one of these")
    places: dict[tuple[str | None, ...], str] = {}
    for name, alone in sites_of(site).items():
        here = f"{at}.partitions.{name}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            fail(here, "the name consists of letters, digits, '-', '_' and '.'; write others as `partition`")
        place = (alone.partition, alone.account, alone.qos)
        if place in places:
            fail(here, f"is the same partition, account and QOS as {places[place]}")
        places[place] = name
        _check_limits(site, site.partitions[name].limits, f"{here}.limits", fail)


def _check_limits(site: SiteConfig, own: LimitsConfig, at: str, fail: Fail) -> None:
    for key in ("max_pending_requests", "max_pilots"):
        most, part = getattr(site.limits, key), getattr(own, key)
        if part and most and part > most:
            fail(f"{at}.{key}", f"{part} is more than all partitions of the site have together: {most}")
    check_time(own, site.pad, at, fail)


def check_time(limits: LimitsConfig, pad: float, at: str, fail: Fail) -> None:
    """Calls `fail` where the longest request holds no task in addition to the pad (seconds)."""
    if limits.max_tr is not None and limits.max_tr <= pad:
        fail(f"{at}.max_tr", f"{limits.max_tr:g} s leaves no time for a task: the pad takes {pad:g} s")
