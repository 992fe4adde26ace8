"""Replay needs libraries that nothing else of the adaptor does."""

from __future__ import annotations

import importlib.util

from adaptor.errors import AdaptorError


def require_extra() -> None:
    """Raises AdaptorError: the libraries are not installed; the message says how to get them."""
    missing = [name for name in ("numpy", "numba") if importlib.util.find_spec(name) is None]
    if missing:
        raise AdaptorError(
            f"replay needs {' and '.join(missing)}: python -m pip install 'request-adaptor[replay]'"
        )
