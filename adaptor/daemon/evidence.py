"""What pilots leave in their folders: results that nobody acknowledged, and why workers gave up."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import msgspec

from adaptor.link.messages import Result

log = logging.getLogger(__name__)

KEPT = 50
"""Folders of ended pilots that are kept."""

_results: msgspec.msgpack.Decoder[list[Result]] = msgspec.msgpack.Decoder(list[Result])


def pilots_directory(state: Path) -> Path:
    return state / "pilots"


def pilot_directory(state: Path, pilot: int) -> Path:
    return pilots_directory(state) / str(pilot)


def unsent_results(directory: Path) -> list[tuple[Path, list[Result]]]:
    """The results that workers wrote down when they left without an acknowledgement, by file."""
    found = []
    for path in sorted(directory.glob("unsent-*.msgpack")):
        try:
            found.append((path, _results.decode(path.read_bytes())))
        except (OSError, msgspec.DecodeError) as error:
            log.error("%s: these results cannot be read: %s", path, error)
    return found


def complaints(directory: Path) -> str:
    """What workers that could not reach the daemon wrote, one sentence each; empty if there were none."""
    texts = []
    for path in sorted(directory.glob("unreachable-*.txt")):
        try:
            texts.append(path.read_text(encoding="utf-8", errors="replace").strip())
        except OSError as error:
            log.error("%s: cannot be read: %s", path, error)
    return " ".join(texts)


def last_words(directory: Path) -> str:
    """The last line that the scheduler's log of a pilot has, which often says why it failed."""
    lines: list[str] = []
    for path in sorted([*directory.glob("slurm-*.out"), *directory.glob("local-*.out")]):
        try:
            lines += path.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        except OSError as error:
            log.error("%s: cannot be read: %s", path, error)
    spoken = [line.strip() for line in lines if line.strip()]
    return spoken[-1][:300] if spoken else ""


def prune(state: Path, in_system: set[int]) -> None:
    """Remove the folders of ended pilots but for the newest."""
    folders = [path for path in pilots_directory(state).glob("*") if path.name.isdigit()]
    ended = sorted((path for path in folders if int(path.name) not in in_system), key=lambda p: int(p.name))
    for path in ended[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)
