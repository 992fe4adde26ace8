"""The settings that a backend passes to a worker in environment variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from adaptor.bag_spec import BUNDLES
from adaptor.errors import AdaptorError
from adaptor.worker.given import AskedOfNode, asked_of

_T = TypeVar("_T")
REACH_TIMEOUT = 45.0
"""Seconds for which a worker tries to reach its daemon, unless ADAPTOR_REACH_TIMEOUT is set."""


class SettingsError(AdaptorError):
    """A variable is missing or invalid; no backend starts a worker like this."""

    exit_code = 78


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One worker: its pilot, its node and what it may use there."""

    access: Path  # the access file for workers
    pilot: int
    deadline: float  # epoch seconds at which the pilot ends; may be `math.inf`
    processors: int
    memory: int | None = None  # bytes that its tasks may use together; None: the pilot asked for none
    gpus: int = 0  # GPUs that its pilot asked for on this node; 0: none, or it does not say
    node: str
    directory: Path  # the pilot's folder, for the log and for results that could not be sent
    env_before: Path | None = None  # a file with the output of `env -0` before the site's prologue
    gpu_type: str = ""  # of all its GPUs; empty: not known
    reach_timeout: float = REACH_TIMEOUT

    @property
    def asked(self) -> AskedOfNode:
        """The pilot's request on this node."""
        return AskedOfNode(self.processors, self.memory, self.gpus)

    @property
    def file_node(self) -> str:
        """The node's name as part of a file's name."""
        return self.node.replace("/", "_")

    @property
    def archives(self) -> Path:
        """The folder for the archives of what bags stage."""
        return self.access.parent / BUNDLES

    @property
    def scripts(self) -> Path:
        """The folder for what tasks on this node find there: scripts, commands, lists of nodes."""
        return self.directory / f"scripts-{self.file_node}"


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the worker's settings. Raises SettingsError: a variable is missing or invalid."""
    before = environment.get("ADAPTOR_ENV_BEFORE")
    return Settings(
        access=_value(environment, "ADAPTOR_ACCESS", _absolute),
        pilot=_value(environment, "ADAPTOR_PILOT", int),
        deadline=_value(environment, "ADAPTOR_PILOT_END", float),
        processors=_value(environment, "ADAPTOR_PROCESSORS", _positive),
        memory=_value(environment, "ADAPTOR_MEMORY", _positive, lambda: None),
        gpus=asked_of(environment).gpus,
        node=_value(environment, "ADAPTOR_NODE", str),
        directory=_value(environment, "ADAPTOR_DIRECTORY", _absolute),
        env_before=_absolute(before) if before else None,
        gpu_type=environment.get("ADAPTOR_GPU_TYPE", ""),
        reach_timeout=_value(environment, "ADAPTOR_REACH_TIMEOUT", float, lambda: REACH_TIMEOUT),
    )


def _value(
    environment: Mapping[str, str],
    name: str,
    convert: Callable[[str], _T],
    default: Callable[[], _T] | None = None,
) -> _T:
    text = environment.get(name, "")
    if not text and default is not None:
        return default()
    if not text:
        raise SettingsError(f"{name} is not set: only a pilot starts a worker")
    try:
        return convert(text)
    except ValueError as error:
        raise SettingsError(f"{name}: {text!r} is invalid: {error}") from error


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("must be at least 1")
    return number


def _absolute(text: str) -> Path:
    return Path(text).absolute()
