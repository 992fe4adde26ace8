"""Libraries that some commands need besides the adaptor itself, by extras (docs/install.md)."""

from __future__ import annotations

import importlib.util

from adaptor.errors import AdaptorError

PURPOSES = {
    "dask": "adaptor.dask",
    "executor": "adaptor.Executor",
    "web": "the live page",
}
"""Purpose of each extra. `tests/test_extras.py` compares the names with pyproject.toml."""


def require_extra(extra: str, *libraries: str) -> None:
    """Look for libraries of an extra.

    Raises:
        AdaptorError: one is not installed; the message says how to get it.
    """
    missing = [name for name in libraries if not _is_there(name)]
    if missing:
        raise AdaptorError(
            f"{PURPOSES[extra]} needs {' and '.join(missing)}: "
            f"python -m pip install 'request-adaptor[{extra}]'"
        )


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # it was marked as missing
        return False
