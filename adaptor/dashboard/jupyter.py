"""The page as a tile of JupyterLab, through jupyter-server-proxy, which finds this by its entry point."""

from __future__ import annotations

import sys
from typing import Any


def setup() -> dict[str, Any]:
    """Settings by which the proxy starts the page: on a socket in a private folder that the proxy makes.

    Jupyter knows its user, so no second token is asked for; and it passes on whatever name the user's browser
    has for it, so every name is accepted. Only this user reaches the socket.
    """
    command = [sys.executable, "-m", "adaptor.cli", "dashboard"]
    return {
        "command": [*command, "--socket", "{unix_socket}", "--no-token", "--host", "*"],
        "unix_socket": True,
        "timeout": 30,
        "launcher_entry": {"title": "Request Adaptor"},
    }
