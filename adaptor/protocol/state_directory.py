"""The state directory: one daemon's journal, keys, pilots and lock, for its owner's eyes only."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from adaptor.errors import AdaptorError
from adaptor.private_files import NotOursError, open_folder


def state_directory() -> Path:
    """`$ADAPTOR_DIR`, else `$XDG_STATE_HOME/adaptor`, else `~/.local/state/adaptor`; made (0700) if missing.

    Raises AdaptorError: it cannot be made, is not ours, or is open to others.
    """
    named = os.environ.get("ADAPTOR_DIR")
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(named).expanduser() if named else Path(base).expanduser() / "adaptor"
    return private_directory(path.absolute())


def private_directory(path: Path) -> Path:
    """The same path, as a folder of mode 0700 that belongs to us; made if missing.

    Raises AdaptorError: it cannot be made, is not ours (nor a link to it), or is open to others.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        handle = open_folder(str(path), ours=True)
        try:
            status = os.fstat(handle)
        finally:
            os.close(handle)
    except NotOursError as error:
        raise AdaptorError(f"{path}: {error.strerror}; name a folder of your own ($ADAPTOR_DIR)") from error
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be used as a private folder: {error.strerror}") from error
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise AdaptorError(f"{path}: is open to other users; close it with: chmod 700 {path}")
    if stat.S_IMODE(status.st_mode) & 0o700 != 0o700:
        raise AdaptorError(f"{path}: is closed to yourself; open it with: chmod 700 {path}")
    return path
