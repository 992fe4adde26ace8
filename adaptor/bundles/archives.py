"""The archives of bundles in the state directory: their names, and which of them are there, or old."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from adaptor.bag_spec import BUNDLES
from adaptor.private_files import NotOursError, open_ours

_SUFFIX = ".tar"
_SUBMITTING = 3600.0  # seconds for which an archive waits for its bag


def archive_name(digest: str) -> str:
    """The name of an archive in `BUNDLES`."""
    return f"{digest}{_SUFFIX}"


def old_archives(state: Path, now: float) -> dict[str, Path]:
    """By digest, the archives that belong to no bag that is being submitted, and half-written ones.

    `now`: epoch seconds.
    """
    found: dict[str, Path] = {}
    with contextlib.suppress(OSError), os.scandir(state / BUNDLES) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < now - _SUBMITTING:
                found[entry.name.removesuffix(_SUFFIX)] = Path(entry.path)
    return found


def is_there(state: Path, digest: str) -> bool:
    """Whether the archive of a bundle is in the state directory, as a file of this user's alone."""
    try:
        os.close(open_ours(state / BUNDLES / archive_name(digest), closed=True))
    except (NotOursError, OSError):
        return False
    return True
