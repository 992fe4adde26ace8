"""Listening of the page: at a socket file of this user's, or a port; and the server that runs there."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from pathlib import Path

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adaptor.api import StartView
from adaptor.dashboard.access import PageGuard
from adaptor.dashboard.document import ASSETS, asset, bag_document, live_document
from adaptor.dashboard.feed import Feed
from adaptor.dashboard.page import Page, joined
from adaptor.errors import AdaptorError
from adaptor.protocol.state_directory import private_directory

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def application(
    feed: Feed,
    metrics: Callable[[str], tuple[bytes, str]],
    report: Callable[[int], Page],
    when: Callable[[Mapping[str, str]], list[StartView]],
    *,
    token: str | None,
    hosts: Collection[str] = (),
    base: str = "",
) -> ASGIApp:
    """The application behind its guard.

    `metrics` gets what a scraper accepts, `report` a bag, `when` a form; they take time and raise
    AdaptorError.
    """

    async def document(_: Request) -> Response:
        return HTMLResponse(live_document())

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return PlainTextResponse("there is no such file", 404)
        return Response(asset(name), media_type=_TYPES["." + name.rpartition(".")[2]])

    async def page(_: Request) -> Response:
        return Response(joined(await feed.now()), media_type="application/json")

    async def events(_: Request) -> Response:
        return StreamingResponse(
            _events(feed), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    async def bag(request: Request) -> Response:
        number = request.path_params["number"]
        return await _in_a_thread(lambda: HTMLResponse(bag_document(report(number))), 404)

    async def starts(request: Request) -> Response:
        form = request.query_params
        return await _in_a_thread(
            lambda: Response(msgspec.json.encode(when(form)), media_type="application/json"), 400
        )

    async def openmetrics(request: Request) -> Response:
        def answer() -> Response:
            content, kind = metrics(request.headers.get("accept", ""))
            return Response(content, headers={"Content-Type": kind})

        return await _in_a_thread(answer, 503)

    routes = [
        Route("/", document),
        Route("/static/{name}", file),
        Route("/bag/{number:int}", bag),
        Route("/page.json", page),
        Route("/when.json", starts),
        Route("/events", events),
        Route("/metrics", openmetrics),
    ]
    return PageGuard(Starlette(routes=routes), token, hosts, base)


async def _in_a_thread(answer: Callable[[], Response], failure: int) -> Response:
    """The answer, or the text of its AdaptorError with this status."""
    try:
        return await asyncio.to_thread(answer)
    except AdaptorError as error:
        return PlainTextResponse(str(error), failure)


async def _events(feed: Feed) -> AsyncIterator[bytes]:
    """Server-sent events: each has the sections that changed."""
    yield b"retry: 2000\n\n"
    async for changed in feed.follow():
        yield b"data: " + joined(changed) + b"\n\n" if changed else b": alive\n\n"


SOCKET_FILE = "dashboard.sock"
_LONGEST = 107  # bytes of a socket's name that Linux takes


def socket_path(directory: Path, runtime: str | None) -> Path:
    """Path of the socket: in the state directory, which is private, or in `$XDG_RUNTIME_DIR` if its name is
    too long.

    Raises AdaptorError: neither will do.
    """
    path = directory / SOCKET_FILE
    if len(os.fsencode(path)) <= _LONGEST:
        return path
    if runtime:
        other = private_directory(Path(runtime)) / f"adaptor-{SOCKET_FILE}"
        if len(os.fsencode(other)) <= _LONGEST:
            return other
    raise AdaptorError(f"{path}: too long for a socket's name; name a shorter one (--socket FILE), or --port")


def bind_socket(path: Path) -> socket.socket:
    """A listening Unix socket of mode 0600.

    The folder has to be private: systems differ in whether the mode of a socket's file keeps others out.

    Raises AdaptorError: the folder is open to others, or another page listens there, or it cannot be made.
    """
    private_directory(path.parent)
    if len(os.fsencode(path)) > _LONGEST:
        raise AdaptorError(f"{path}: too long for a socket's name ({_LONGEST} bytes)")
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise AdaptorError(f"{path}: cannot listen: {error.strerror}") from error
    finally:
        os.umask(before)
    return listener


def _clear(path: Path) -> None:
    """Remove the socket of a page that has died."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise AdaptorError(f"{path}: is there already, and is no socket")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with probe:
        probe.settimeout(2.0)
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise AdaptorError(f"{path}: a dashboard runs here already; end it, or name another --socket")


def bind_port(address: str, port: int) -> socket.socket:
    """Port 0: any free one. Raises AdaptorError: the address is not ours, or the port is taken."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise AdaptorError(
            f"{address} port {port}: cannot listen: {error.strerror}; --port 0 takes a free one"
        ) from error
    return listener


def run(application: ASGIApp, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM, of which the caller sees KeyboardInterrupt or SystemExit."""
    # uvicorn shuts down first, and then raises the signal again
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    config = uvicorn.Config(
        application,
        access_log=False,  # it would hold the token of a first visit
        log_level="warning",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
        http="h11",
        proxy_headers=False,
    )
    uvicorn.Server(config).run(sockets=[listener])
