"""The page as HTML: with links to its files for the server, or with everything inside as one file."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources

from adaptor import api
from adaptor.client.reading import Asker
from adaptor.dashboard.gathering import read_activity, read_details
from adaptor.dashboard.page import BagRow, Head, Page, joined, sections
from adaptor.dashboard.pictures import strips


def stylesheet() -> str:
    return (resources.files("adaptor.dashboard") / "style.css").read_text(encoding="utf-8")


_STYLES = ("uplot.css", "page.css")
_SCRIPTS = (
    *("uplot.js", "words.js", "canvas.js", "when.js", "queue.js", "strips.js", "charts.js"),
    *("sections.js", "page.js"),
)
COMMON_STYLE = "style.css"  # of the experiments' pages too; it stands in `adaptor_experiments.figures`
ASSETS = frozenset({*_STYLES, *_SCRIPTS, COMMON_STYLE, "icon.svg"})


def asset(name: str) -> str:
    if name == COMMON_STYLE:
        return stylesheet()
    return (resources.files("adaptor.dashboard") / "static" / name).read_text(encoding="utf-8")


def live_document() -> str:
    """The page that asks its server; all addresses are relative, for proxies put paths before them."""
    return _document("Request Adaptor", _linked(""), "")


def bag_document(page: Page) -> str:
    """The page of one bag, one folder below the page that links to it, with its data inside."""
    return _document(page.head.title, _linked("../"), _data(page))


def _linked(above: str) -> str:
    files = f"{above}static"
    links = "".join(f'<link rel="stylesheet" href="{files}/{name}">' for name in (COMMON_STYLE, *_STYLES))
    scripts = "".join(f'<script src="{files}/{name}" defer></script>' for name in _SCRIPTS)
    return f'<link rel="icon" href="{files}/icon.svg" type="image/svg+xml">{links}{scripts}'


def static_document(page: Page) -> str:
    """One file with the page's data inside; it makes no requests."""
    style = "\n".join(asset(name) for name in (COMMON_STYLE, *_STYLES))
    code = "\n".join(asset(name) for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_digest(code)}; style-src {_digest(style)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}"><style>{style}</style>'
    )
    return _document(page.head.title, head, f"{_data(page)}<script>{code}</script>")


def _data(page: Page) -> str:
    # In JSON, "<" only stands inside texts, where its escape means the same: no text ends the element.
    data = joined(sections(page)).decode().replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{data}</script>'


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _document(title: str, head: str, end: str) -> str:
    skeleton = asset("skeleton.html")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title>{head}</head>\n<body>\n{skeleton}\n{end}</body></html>\n"
    )


_MOST_ATTEMPTS = 20_000
_WHY = 200


def report_page(ask: Asker, bag: int, now: float) -> Page:
    """The state of a bag at `now` (epoch seconds).

    Raises AdaptorError: neither the daemon nor the journal answers.
    """
    report = ask(api.GetReport(bag))
    started = [request.id for request in report.requests if request.started is not None]
    activity = read_activity(ask, started, _MOST_ATTEMPTS)
    return Page(
        head=Head(now=now, live=True, static=True, title=f"bag {bag} {report.bag.name}".strip()),
        sites=[],
        bags=[BagRow(bag=report.bag, credits=report.credits, first_forecast=report.first_forecast)],
        totals=report.totals,
        queues=[],
        pilots=report.requests,
        strips=strips(activity, [], report.requests),
        details=[read_details(ask, report.bag)],
        why=ask(api.GetWhy(bag=bag, limit=_WHY)).lines,
        credits=api.CreditsView(
            sites=[], bags=[report.credits] if report.credits is not None else [], prices=[]
        ),
    )
