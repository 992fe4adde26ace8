"""The page's server: one document, its files, its data as JSON and as events, and the metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from adaptor.dashboard.access import Guard
from adaptor.dashboard.document import ASSETS, asset, live_document
from adaptor.dashboard.feed import Feed
from adaptor.dashboard.page import joined
from adaptor.errors import AdaptorError

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def application(
    feed: Feed,
    metrics: Callable[[str], tuple[bytes, str]],
    *,
    token: str | None,
    hosts: Collection[str] = (),
    base: str = "",
) -> ASGIApp:
    """The application behind its guard. `metrics` gets what a scraper accepts, takes time, and
    raises AdaptorError."""

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

    async def openmetrics(request: Request) -> Response:
        try:
            content, kind = await asyncio.to_thread(metrics, request.headers.get("accept", ""))
            return Response(content, headers={"Content-Type": kind})
        except AdaptorError as error:
            return PlainTextResponse(str(error), 503)

    routes = [
        Route("/", document),
        Route("/static/{name}", file),
        Route("/page.json", page),
        Route("/events", events),
        Route("/metrics", openmetrics),
    ]
    return Guard(Starlette(routes=routes), token, hosts, base)


async def _events(feed: Feed) -> AsyncIterator[bytes]:
    """Server-sent events: each has the sections that changed."""
    yield b"retry: 2000\n\n"
    async for changed in feed.follow():
        yield b"data: " + joined(changed) + b"\n\n" if changed else b": alive\n\n"
