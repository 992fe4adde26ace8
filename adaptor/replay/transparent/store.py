"""The folder of the experiment: one file per finished piece, so that it can be stopped and resumed."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from adaptor.replay.errors import ReplayError
from adaptor.replay.transparent.design import Piece, Settings
from adaptor.replay.transparent.sample import Outcome


class Store:
    """A piece's file appears whole or not at all, and its name says which it is: nothing counts twice."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        """Open the folder, made where it does not exist.

        Raises:
            ReplayError: it holds results of other settings, or cannot be written.
        """
        self.folder = folder
        self._parts = folder / "samples"
        wanted, path = msgspec.json.encode(settings), folder / "settings.json"
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                _replace(path, wanted)
            elif path.read_bytes() != wanted:
                raise ReplayError(
                    f"{folder} holds results of other settings ({path.name}); take another folder"
                )
        except OSError as error:
            raise ReplayError(f"{folder}: {error.strerror or error}") from error

    def has(self, piece: Piece) -> bool:
        return self._path(piece).exists()

    def add(self, piece: Piece, outcomes: list[Outcome]) -> None:
        """Raises ReplayError: the file cannot be written."""
        path = self._path(piece)
        try:
            _replace(path, msgspec.json.encode(outcomes))
        except OSError as error:
            raise ReplayError(f"{path}: {error.strerror or error}") from error

    def read(self, piece: Piece) -> list[Outcome]:
        """Raises ReplayError: the file is damaged."""
        path = self._path(piece)
        try:
            return msgspec.json.decode(path.read_bytes(), type=list[Outcome])
        except (OSError, msgspec.DecodeError) as error:
            raise ReplayError(f"{path}: {error}; remove it, and it is made again") from error

    def _path(self, piece: Piece) -> Path:
        return self._parts / f"{piece.name}.json"


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
