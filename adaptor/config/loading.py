"""The site configuration: where its file is, and its text as typed objects."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from adaptor.config.checks import check, failing
from adaptor.config.donation import check_hours
from adaptor.config.locating import converted
from adaptor.config.policy import Policy, PolicyKeys, governed, is_governed
from adaptor.config.schema import BUILT_IN, Config
from adaptor.config.yaml_lines import MOST_BYTES, KeyLines, read_yaml, too_large
from adaptor.errors import AdaptorError, ConfigError
from adaptor.private_files import write_private

POLICY = Path("/etc/adaptor/policy.yaml")
"""The operator's policy; only root can set it, so a user cannot choose it."""
SITES = Path("/etc/adaptor/sites.yaml")
"""The sites that the operator of this machine describes for its users, in the form of a configuration."""
ROOT = 0
"""The user id that owns the files of the operator; another one in tests only."""
LAST = "configuration"
"""The file of the state directory with the sites of the last daemon, and the path of its configuration."""


def config_path(option: str | None = None) -> Path | None:
    """The file that counts: `--config`, `$ADAPTOR_CONFIG`, the XDG place, then `SITES`; None: there is none.

    Raises:
        ConfigError: a file that was named does not exist.
    """
    path, how = configured_place(option)
    if path.is_file():
        return path
    if how:
        problem = "a folder, not a file" if path.is_dir() else "no such file"
        raise ConfigError(f"{path}: {problem} (given by {how})")
    return SITES if SITES.is_file() else None


def configured_place(option: str | None = None) -> tuple[Path, str]:
    """Path of the configuration, existing or not, and the option or variable that names it; empty: the
    default."""
    for named, how in ((option, "--config"), (os.environ.get("ADAPTOR_CONFIG"), "$ADAPTOR_CONFIG")):
        if named:
            return Path(named).expanduser(), how
    return default_config_path(), ""


def default_config_path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "adaptor" / "config.yaml"


def files_of(path: Path) -> list[Path]:
    """The files of a configuration: `SITES` first, if this is the file at the XDG place, which adds to it."""
    adds = path.absolute() == default_config_path().absolute() and SITES.is_file()
    return [SITES, path] if adds else [path]


def goes_on_with(last: Path, default: Path | None) -> bool:
    """True if `default`, the file where none is named, is that of the last daemon, or adds to it."""
    return default is not None and last.resolve() in {file.resolve() for file in files_of(default)}


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
    return sites, path


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


def read_policy(path: Path = POLICY, owner: int = ROOT) -> Policy:
    """The operator's policy; `path` and `owner` (a user id) differ in tests only.

    Raises:
        ConfigError: another user may write the file, or it cannot be understood.
    """
    if not path.exists():
        return Policy()
    text, status = _read(path)
    _check_owner(path, status, owner)
    lines, data = read_yaml(text, str(path))
    keys = converted({} if data is None else data, lines, str(path), PolicyKeys)
    check_hours(keys.donation.hours or (), "$.donation.hours", failing(lines, str(path)))
    return Policy(keys, lines, str(path))


def _check_owner(path: Path, status: os.stat_result, owner: int) -> None:
    """Raises ConfigError: another user may write a file that binds all users or runs commands as them."""
    if status.st_uid != owner or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(
            f"{path}: belongs to user id {status.st_uid} and has mode {status.st_mode & 0o777:o}; only root "
            f"may write it: ask an administrator for: chown root {path}; chmod 644 {path}"
        )


def load_config(path: Path | None, policy: Callable[[], Policy] = read_policy) -> Config:
    """The configuration of a file, or the built-in local site; `policy` differs in tests only.

    The file at the XDG place adds to `SITES`: keys of both are the user's.

    Raises:
        ConfigError: the file is unreadable, not YAML, or says something that we do not understand, or that
            the operator does not allow.
    """
    if path is None:
        return BUILT_IN
    whole: Any = None
    for file in files_of(path):  # each is checked with those before it, so a mistake is of the file named
        text, status = _read(file)
        if file == SITES:
            _check_owner(file, status, ROOT)
        lines, data = read_yaml(text, str(file))
        whole = _added(whole, data) if whole else data
        config = _checked(whole, lines, str(file), policy)
        secret = any(channel.url is not None for channel in config.notify.channels.values())
        if secret and status.st_mode & 0o077:
            raise ConfigError(
                f"{file}: holds the URL of a channel and is open to other users; "
                f"close it with: chmod 600 {file}"
            )
    return config


def _read(path: Path) -> tuple[str, os.stat_result]:
    """Text and status of a file."""
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
    """Load a configuration like `load_config`, from text; `name` stands for the file in errors."""
    lines, data = read_yaml(text, name)
    return _checked(data, lines, name, policy)


def _added(base: dict[str, Any], more: Any) -> Any:
    """`more` with the keys of `base` that it lacks, also in the mappings within; an empty file has none."""
    if more is None:
        return base
    if not isinstance(more, dict):
        return more
    within = {
        key: _added(base[key], value)
        for key, value in more.items()
        if isinstance(base.get(key), dict) and value is not None
    }
    return {**base, **more, **within}


def _checked(data: Any, lines: KeyLines, name: str, policy: Callable[[], Policy]) -> Config:
    """The configuration of parsed YAML within the policy. Raises ConfigError."""
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
    """Digest of the content of the configuration's files; empty: none can be read."""
    digest, found = hashlib.sha256(), False
    for each in files_of(path):
        with contextlib.suppress(OSError), each.open("rb") as file:
            digest.update(file.read(MOST_BYTES + 1))
            found = True
    return digest.hexdigest()[:32] if found else ""
