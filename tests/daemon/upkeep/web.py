"""A web server on the loopback that receives notifications."""

from __future__ import annotations

import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import psutil

SECRET = f"s3cret-{secrets.token_hex(8)}"
"""Secret of this process alone: other tests may write theirs where all can see it."""


class Web:
    """An HTTP server that keeps what is posted to it."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.argvs: list[str] = []
        """Arguments of all processes of this user, while a message came in."""
        self.refuse = 0
        """Requests that are refused from now on."""
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                web.argvs += [
                    " ".join(each.info["cmdline"] or []) for each in psutil.process_iter(["cmdline"])
                ]
                web.refuse, refused = max(0, web.refuse - 1), web.refuse > 0
                if not refused:
                    web.got.append({"path": self.path, **body})
                self.send_response(503 if refused else 200)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                """Quiet."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """With time for an answer on a busy machine."""
        return f"json://127.0.0.1:{self._server.server_port}/{SECRET}?cto=60&rto=60"

    @property
    def titles(self) -> list[str]:
        return [each["title"] for each in self.got]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
