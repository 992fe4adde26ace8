"""Who gets the page, and who does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from adaptor.dashboard.access import TOKEN_FILE, PageGuard, load_or_make_token
from adaptor.errors import AdaptorError

TOKEN = "t" * 43


async def secret(_: Request) -> PlainTextResponse:
    return PlainTextResponse("the page")


def client(token: str | None = TOKEN, hosts: tuple[str, ...] = (), base: str = "", **more: str) -> TestClient:
    inner = Starlette(routes=[Route("/", secret), Route("/page.json", secret)])
    url = more.get("url", "http://localhost:8765")
    return TestClient(PageGuard(inner, token, hosts, base), base_url=url, follow_redirects=False)


def test_without_the_token_nothing_is_told() -> None:
    for path in ("/", "/page.json", "/?token=", "/?token=wrong", "/nothing-here"):
        answer = client().get(path)
        assert answer.status_code == 401
        assert "the page" not in answer.text
        assert TOKEN not in answer.text


def test_the_first_visit_sets_a_strict_cookie_and_leaves_the_token_behind() -> None:
    visitor = client()
    way = visitor.get(f"/?token={TOKEN}")
    assert way.status_code == 303
    assert "set-cookie" not in way.headers
    place = way.headers["location"]
    first = visitor.get(place)
    assert first.status_code == 303
    assert first.headers["location"] == "./"
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in first.headers["set-cookie"]
    assert "path" not in cookie
    place = place.partition("?")[0]
    assert visitor.get(place).text == visitor.get(f"{place}page.json").text == "the page"
    assert visitor.get("/").status_code == 401, "the browser sends no cookie"
    assert client().get("/", headers={"cookie": "adaptor-00000000=x; broken=\x7f"}).status_code == 401


def test_a_server_at_another_port_gets_no_cookie() -> None:
    """Browsers send cookies by host name and path, whatever the port."""
    visitor = client()
    place = visitor.get(f"/?token={TOKEN}").headers["location"]
    visitor.get(place)
    (cookie,) = visitor.cookies.jar
    assert f"/?token={TOKEN}" not in cookie.path
    assert cookie.path == place.removeprefix(".").partition("/?")[0]
    assert len(cookie.path) > 32
    assert (
        cookie.path
        != client(token="u" * 43).get(f"/?token={'u' * 43}").headers["location"][1:].partition("/?")[0]
    )
    for path in ("/", "/page.json", "/index.html", "/page-0/"):
        sent = visitor.build_request("GET", path).headers
        assert "cookie" not in sent


def test_below_what_a_proxy_leaves_the_browser_has_the_same_place() -> None:
    visitor = client(base="/node/login1/8765")
    place = visitor.get(f"/node/login1/8765/?token={TOKEN}").headers["location"].removeprefix("./")
    visitor.get(f"/node/login1/8765/{place}")
    assert visitor.get(f"/node/login1/8765/{place.partition('?')[0]}page.json").text == "the page"


def test_a_scraper_shows_the_token_in_a_header() -> None:
    assert client().get("/page.json", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client().get("/page.json", headers={"authorization": "Bearer wrong"}).status_code == 401


def test_a_name_of_a_stranger_that_leads_here_is_refused_even_with_the_token() -> None:
    stranger = client(url="http://evil.example:8765")
    assert stranger.get(f"/?token={TOKEN}").status_code == 421
    assert client(token=None, url="http://evil.example").get("/").status_code == 421
    assert client(hosts=("portal.example",), url="http://portal.example").get("/").status_code == 401
    for local in ("http://127.0.0.1:1", "http://[::1]:1", "http://localhost"):
        assert client(token=None, url=local).get("/").status_code == 200


def test_behind_a_proxy_that_knows_its_users_any_name_will_do() -> None:
    assert client(token=None, hosts=("*",), url="http://hub.example").get("/").status_code == 200
    assert client(hosts=("*",), url="http://hub.example").get("/").status_code == 401


def test_the_page_is_only_read() -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert client(token=None).request(method, "/").status_code == 405


def test_what_a_proxy_leaves_before_the_paths_is_taken_off() -> None:
    proxied = client(token=None, base="/node/login1/8765")
    for path in ("/node/login1/8765/page.json", "/node/login1/8765/", "/node/login1/8765", "/page.json"):
        assert proxied.get(path).text == "the page"
    assert proxied.get("/node/login1/87654/page.json").status_code == 404


def test_every_answer_forbids_what_the_page_does_not_need() -> None:
    for answer in (client().get("/"), client(token=None).get("/")):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_token_is_made_once_and_private(tmp_path: Path) -> None:
    token = load_or_make_token(tmp_path)
    assert len(token) >= 43
    assert load_or_make_token(tmp_path) == token
    assert (tmp_path / TOKEN_FILE).stat().st_mode & 0o777 == 0o600


def test_a_token_that_others_may_know_is_refused(tmp_path: Path) -> None:
    load_or_make_token(tmp_path)
    (tmp_path / TOKEN_FILE).chmod(0o644)
    with pytest.raises(AdaptorError, match="open to other users; close it"):
        load_or_make_token(tmp_path)


@pytest.mark.parametrize("content", ["", "short", "x" * 40 + "\nX-Header: y", "ü" * 50])
def test_a_damaged_token_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / TOKEN_FILE
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(AdaptorError, match="damaged"):
        load_or_make_token(tmp_path)


def test_a_link_or_a_fifo_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AdaptorError):
        load_or_make_token(tmp_path)
    (tmp_path / TOKEN_FILE).unlink()
    os.mkfifo(tmp_path / TOKEN_FILE, 0o600)
    with pytest.raises(AdaptorError):
        load_or_make_token(tmp_path)
