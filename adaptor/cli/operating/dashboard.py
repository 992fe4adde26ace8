"""`adaptor dashboard`: the live page, with numbers for Prometheus."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adaptor.cli.option_sections import SectionedCommand, sectioned
from adaptor.errors import UsageError
from adaptor.extras import require_extra
from adaptor.protocol.state_directory import state_directory

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_FORWARDED = 8765  # the port of the user's own machine in the line that is printed


@click.command(cls=SectionedCommand)
@click.option("--socket", "file", metavar="FILE", help="Unix socket, in a folder that only you can enter.")
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="PORT", help="A port instead of the socket; 0: any."
)
@sectioned(
    "More", "--bind", metavar="ADDRESS", default="127.0.0.1", help="Address of the port (default: 127.0.0.1)."
)
@sectioned(
    "More", "--host", "hosts", multiple=True, metavar="NAME", help="Another name of the page; repeatable."
)
@sectioned(
    "More", "--base-url", metavar="PATH", default="", help="What a proxy leaves before the page's paths."
)
@sectioned("More", "--no-token", is_flag=True, help="For a socket behind a proxy that knows its users.")
def dashboard(
    file: str | None, port: int | None, bind: str, hosts: tuple[str, ...], base_url: str, no_token: bool
) -> None:
    """Show all this live in a browser.

    The page has bags, the queue and its holes, what runs in the pilots, failures, reasons and credits.

    A process of its own that only reads. It asks the daemon, or the journal while none runs, and
    listens on a Unix socket that only you can open. Its address holds a token: keep it to yourself.

    \b
    Examples:
      adaptor dashboard
      adaptor dashboard --port 8765
    """
    require_extra("web", "starlette", "uvicorn", "prometheus_client")
    if port is not None and file is not None:
        raise UsageError("--port and --socket exclude each other")
    if port is not None and no_token:
        raise UsageError("--no-token is for sockets: every user of this machine reaches a port")
    from adaptor.dashboard import access, listening

    if port is not None and access.ANY_HOST in hosts:
        raise UsageError("--host '*' is for sockets: other web pages could lead a browser to a port")

    directory, base = state_directory(), base_url.strip("/")
    base = f"/{base}" if base else ""
    token = None if no_token else access.load_or_make_token(directory)
    page = f"{base}/" + (f"?token={token}" if token else "")
    names = {host.lower() for host in hosts}
    if port is not None:
        listener = listening.bind_port(bind, port)
        bound = listener.getsockname()[1]
        name = f"[{bind}]" if ":" in bind else bind
        if bind in ("0.0.0.0", "::"):  # noqa: S104  # named, not bound
            name = socket.gethostname()
        click.echo(f"listening on {bind} port {bound}")
        click.echo(f"  http://{name}:{bound}{page}")
        names |= {name.lower() for name in (socket.gethostname(), socket.getfqdn(), bind)}
        listening.run(_application(token, names, base), listener)
        return
    named = Path(file).expanduser().absolute() if file else None
    path = named or listening.socket_path(directory, os.environ.get("XDG_RUNTIME_DIR"))
    listener = listening.bind_socket(path)
    try:
        click.echo(f"listening on {path}")
        click.echo("on your own machine:")
        click.echo(
            f"  ssh -N -L {_FORWARDED}:{shlex.quote(str(path))} {getpass.getuser()}@{socket.gethostname()}"
        )
        click.echo(f"  http://localhost:{_FORWARDED}{page}")
        listening.run(_application(token, names, base), listener)
    finally:
        path.unlink(missing_ok=True)


def _application(token: str | None, names: set[str], base: str) -> ASGIApp:
    from adaptor.client.reading import PAGE_TIMEOUT, Reader
    from adaptor.client.when import in_words
    from adaptor.dashboard.document import report_page
    from adaptor.dashboard.feed import Feed
    from adaptor.dashboard.gathering import Gatherer
    from adaptor.dashboard.listening import application
    from adaptor.dashboard.numbers import NumbersReader
    from adaptor.dashboard.openmetrics import encoded

    source = Reader(time.time, PAGE_TIMEOUT, quiet=True)
    reader = NumbersReader(source, time.time)
    gatherer = Gatherer(source, time.time, time.monotonic, f"Request Adaptor on {socket.gethostname()}")
    return application(
        Feed(gatherer.gather, gatherer.gather_soon, longer=lambda: gatherer.pause),
        lambda accept: encoded(reader.read(), reader.ended, accept),
        lambda bag: report_page(Reader(time.time, PAGE_TIMEOUT, quiet=True).get, bag, time.time()),
        in_words,
        token=token,
        hosts=names,
        base=base,
    )
