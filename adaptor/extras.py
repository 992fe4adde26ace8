"""Replay needs libraries that nothing else of the adaptor does."""

from __future__ import annotations

import importlib.util

from adaptor.errors import AdaptorError


def require_extra(*libraries: str) -> None:
    """Look for these libraries of the extra `replay`, numpy and numba where none is named.

    Raises:
        AdaptorError: one is not installed; the message says how to get it.
    """
    missing = [name for name in libraries or ("numpy", "numba") if importlib.util.find_spec(name) is None]
    if missing:
        raise AdaptorError(
            f"replay needs {' and '.join(missing)}: python -m pip install 'request-adaptor[replay]'"
        )
