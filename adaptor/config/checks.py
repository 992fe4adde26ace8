"""Checks of a configuration that concern several keys, or need more than a range."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import msgspec

from adaptor.config.budget import check_costs
from adaptor.config.donation import check_donation
from adaptor.config.notices import check_notices
from adaptor.config.partitions import check_partitions, check_time
from adaptor.config.registered import BackendFacts, load_backend
from adaptor.config.schema import Config, SiteConfig
from adaptor.config.ssh import NAME, check_environment, check_ssh
from adaptor.config.yaml_lines import Fail, KeyLines
from adaptor.errors import ConfigError


def check(config: Config, lines: KeyLines, name: str) -> None:
    """Check what the type of one key alone cannot say.

    Raises:
        ConfigError: names file, line and key.
    """

    def fail(path: str, problem: str) -> NoReturn:
        raise ConfigError(f"{name}:{lines.get(path, lines.get('$.sites', 1))}: {path[2:]}: {problem}")

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
    """All texts below a value, with their paths, but for those that may have several lines."""
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
    if site.dialect is not None and site.dialect not in backend.dialects:
        known = ", ".join(backend.dialects) or "none"
        fail(f"{at}.dialect", f"backend {site.backend} has no dialect {site.dialect!r} (it has: {known})")
    for key, problem in backend.key_problems(site):
        fail(f"{at}.{key}", problem)
    return backend


def _check_spool(site: SiteConfig, at: str, fail: Fail) -> None:
    if site.spool is None:
        return
    if site.ssh is not None and site.ssh.link != "spool":
        fail(f"{at}.spool", f"is not used with ssh.link: {site.ssh.link}; write ssh.link: spool")
    if site.ssh is None and not Path(site.spool).expanduser().is_absolute():
        fail(f"{at}.spool", f"{site.spool!r} is not an absolute path")
