"""Access to the page: a token as Jupyter's, a strict cookie, known host names, and reading only.

On a shared login node every user reaches 127.0.0.1, and a foreign host name can lead a browser to any
address. So a request needs the token or the cookie that its first visit set, and a host name that is expected
here. Cookies know no ports: another user's server at another port would get it too. So it is set for a path
that follows from the token, below which the page is, and browsers send it for that path only.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Collection
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adaptor.errors import AdaptorError
from adaptor.private_files import open_ours, write_private

TOKEN_FILE = "dashboard-token"  # noqa: S105  # a name, not a secret
_SHORTEST_TOKEN = 32
ANY_HOST = "*"
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def load_or_make_token(directory: Path) -> str:
    """The token of a state directory, 256 bits in a 0600 file; made if missing.

    Raises AdaptorError: the file is damaged, not ours, or open to others.
    """
    path = directory / TOKEN_FILE
    try:
        with os.fdopen(open_ours(path, closed=True), "rb") as file:
            token = file.read(1000).decode("ascii", "replace").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        write_private(path, token.encode())
        return token
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be read: {error.strerror}; remove it") from error
    if len(token) < _SHORTEST_TOKEN or not token.replace("-", "").replace("_", "").isalnum():
        raise AdaptorError(f"{path}: damaged; remove it, and a new token is made")
    return token


class PageGuard:
    """Lets requests through that read, name an expected host, and know the token."""

    def __init__(self, app: ASGIApp, token: str | None, hosts: Collection[str], base: str = "") -> None:
        """Args:
        token: None: the socket's file is the only lock.
        hosts: names besides those of the loopback under which browsers may ask; lower case; `*`: any.
        base: `/a/path` before all paths, where a proxy does not take it off; empty: none.
        """
        self._app = app
        self._token = token
        self._hosts = LOCAL_NAMES | set(hosts)
        self._base = base
        key = hashlib.sha256(f"cookie {token}".encode()).hexdigest()
        self._cookie, self._value = f"adaptor-{key[:8]}", key[8:]
        self._place = f"/page-{hashlib.sha256(f'place {token}'.encode()).hexdigest()[:32]}"
        """Prefix of the paths for browsers."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = self._without_base(scope)
        headers = Headers(scope=scope)
        inside = scope["path"].startswith(f"{self._place}/")
        if inside:
            scope = {**scope, "path": scope["path"][len(self._place) :]}
        answer = self._refusal(scope, headers, inside=inside)
        await (answer or self._app)(scope, receive, _with_headers(send))

    def _without_base(self, scope: Scope) -> Scope:
        path = scope["path"]
        if not self._base or not path.startswith((self._base + "/", self._base + "?")):
            return scope if path != self._base or not self._base else {**scope, "path": "/"}
        return {**scope, "path": path[len(self._base) :]}

    def _refusal(self, scope: Scope, headers: Headers, *, inside: bool) -> Response | None:
        """The answer instead of the page; None: the page.

        `inside`: whether the path is one for browsers.
        """
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("this page is only read", 405, {"Allow": "GET, HEAD"})
        host = _host_name(headers.get("host", ""))
        if host not in self._hosts and ANY_HOST not in self._hosts:
            known = PlainTextResponse(
                f"{host!r} is no name of this page; start it with --host {host} if it is meant", 421
            )
            return known if host else PlainTextResponse("a request without a host name", 400)
        if self._token is None or self._knows(headers):
            return None
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if not _same(given, self._token):
            return PlainTextResponse(
                "this page needs its token: open the address that `adaptor dashboard` has printed", 401
            )
        if not inside:
            return RedirectResponse(f".{self._place}/?{urlencode({'token': given})}", 303)
        answer = RedirectResponse("./", 303)
        # Without a path it is for this one, as the browser sees it: a proxy may put something before it.
        answer.set_cookie(self._cookie, self._value, path=None, httponly=True, samesite="strict")
        return answer

    def _knows(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() in ("bearer", "token") and _same(token.strip(), self._token or ""):
            return True
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load(headers.get("cookie", ""))
        except Exception:  # a cookie of another page that Python does not understand
            return False
        return self._cookie in jar and _same(jar[self._cookie].value, self._value)


def _host_name(host: str) -> str:
    """The host without the port, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped
