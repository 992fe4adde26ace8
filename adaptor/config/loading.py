"""The site configuration: where its file is, and its text as typed objects."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from adaptor.config.checks import check, failing
from adaptor.config.donation import check_hours
from adaptor.config.locating import converted
from adaptor.config.policy import Policy, PolicyKeys, governed, is_governed
from adaptor.config.schema import BUILT_IN, Config
from adaptor.config.yaml_lines import MOST_BYTES, read_yaml, too_large
from adaptor.errors import AdaptorError, ConfigError
from adaptor.private_files import write_private

POLICY = Path("/etc/adaptor/policy.yaml")
"""What the operator of this machine allows; only root can set it, so a user cannot choose it."""
LAST = "configuration"
"""The file of the state directory with the sites of the last daemon, and the path of its configuration."""


def config_path(option: str | None = None) -> Path | None:
    """The file that counts: `--config`, `$ADAPTOR_CONFIG`, then the XDG place; None where there is none.

    Raises:
        ConfigError: a file that was named does not exist.
    """
    path, how = configured_place(option)
    if path.is_file():
        return path
    if how:
        problem = "a folder, not a file" if path.is_dir() else "no such file"
        raise ConfigError(f"{path}: {problem} (given by {how})")
    return None


def configured_place(option: str | None = None) -> tuple[Path, str]:
    """Where the configuration is or would be, and what names the place; empty: nothing does."""
    for named, how in ((option, "--config"), (os.environ.get("ADAPTOR_CONFIG"), "$ADAPTOR_CONFIG")):
        if named:
            return Path(named).expanduser(), how
    return default_config_path(), ""


def default_config_path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "adaptor" / "config.yaml"


def last_config(directory: Path) -> Path | None:
    """The file that the last daemon of a state directory used; None: it used none."""
    path = _last(directory)[1].removesuffix(b"\n")
    return Path(os.fsdecode(path)) if path else None


def last_sites(directory: Path) -> list[str]:
    """The sites of the last daemon of a state directory; none: there was no daemon."""
    return _last(directory)[0].decode().split()


def _last(directory: Path) -> tuple[bytes, bytes]:
    try:
        sites, _, path = (directory / LAST).read_bytes().partition(b"\n")
    except FileNotFoundError:
        return b"", b""
    return (sites, path) if path else (b"", sites)  # earlier versions wrote the path alone


def remember_config(directory: Path, path: Path | None, sites: Iterable[str]) -> None:
    """Write down for the next daemon which file this one uses, and its sites; None: it uses none.

    Raises:
        AdaptorError: it cannot be written.
    """
    note = directory / LAST
    file = b"" if path is None else os.fsencode(path.absolute())
    try:
        write_private(note, " ".join(sites).encode() + b"\n" + file + b"\n")
    except OSError as error:
        raise AdaptorError(f"{note}: cannot be written: {error.strerror}") from error


def read_policy(path: Path = POLICY, owner: int = 0) -> Policy:
    """What the operator of this machine allows; `path` and `owner` (a user id) differ in tests only.

    Raises:
        ConfigError: another user may write the file, or it cannot be understood.
    """
    if not path.exists():
        return Policy()
    text, status = _read(path)
    if status.st_uid != owner or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(
            f"{path}: belongs to user id {status.st_uid} and has mode {status.st_mode & 0o777:o}; only root "
            f"may write a policy: ask an administrator for: chown root {path}; chmod 644 {path}"
        )
    lines, data = read_yaml(text, str(path))
    keys = converted({} if data is None else data, lines, str(path), PolicyKeys)
    check_hours(keys.donation.hours or (), "$.donation.hours", failing(lines, str(path)))
    return Policy(keys, lines, str(path))


def load_config(path: Path | None, policy: Callable[[], Policy] = read_policy) -> Config:
    """The configuration of a file, or the built-in local site; `policy` differs in tests only.

    Raises:
        ConfigError: the file is unreadable, not YAML, or says something that we do not understand, or that
            the operator does not allow.
    """
    if path is None:
        return BUILT_IN
    text, status = _read(path)
    config = parse_config(text, str(path), policy)
    if status.st_mode & 0o077 and any(channel.url is not None for channel in config.notify.channels.values()):
        raise ConfigError(
            f"{path}: holds the URL of a channel and is open to other users; close it with: chmod 600 {path}"
        )
    return config


def _read(path: Path) -> tuple[str, os.stat_result]:
    """Its text and its status."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
            status = os.fstat(file.fileno())
        if len(data) > MOST_BYTES:
            raise too_large(str(path))
        return data.decode().replace("\r\n", "\n"), status
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path}: cannot be read: {problem}") from error


def parse_config(text: str, name: str, policy: Callable[[], Policy] = read_policy) -> Config:
    """As `load_config`, from text; `name` stands for the file in errors."""
    lines, data = read_yaml(text, name)
    config = converted(data, lines, name, Config)
    check(config, lines, name)
    if not any(map(is_governed, config.sites.values())):
        return config
    rules, fail = policy(), failing(lines, name)
    if not rules.path:
        return config
    sites = {
        site: governed(each, rules, f"$.sites.{site}", lines, fail) if is_governed(each) else each
        for site, each in config.sites.items()
    }
    return msgspec.structs.replace(config, sites=sites)


def digest_of(path: Path) -> str:
    """Of the file's content; empty: it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(MOST_BYTES + 1)).hexdigest()[:32]
    except OSError:
        return ""
