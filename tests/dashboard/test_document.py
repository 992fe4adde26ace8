"""The page as one file, and the files that it is made of."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import msgspec
import pytest

from adaptor import api
from adaptor.dashboard.document import ASSETS, asset, static_document
from adaptor.dashboard.gathering import Gatherer, read_details
from adaptor.dashboard.page import Page
from tests.cli.fake_control import running_bag
from tests.dashboard.told import NOW, SUMS, Told

UPLOT = {
    "uplot.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uplot.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""Of dist/uPlot.iife.min.js and dist/uPlot.min.css in the npm package uplot 1.6.32."""


def page(title: str = "bag 7") -> Page:
    return Gatherer(Told(), lambda: NOW, lambda: NOW, title).gather()


@pytest.mark.parametrize("name", sorted(UPLOT))
def test_what_is_vendored_is_what_was_published(name: str) -> None:
    assert hashlib.sha256(asset(name).encode()).hexdigest() == UPLOT[name]


@pytest.mark.parametrize("name", sorted(ASSETS - set(UPLOT)))
def test_no_file_of_ours_names_another_host_or_makes_html_of_text(name: str) -> None:
    text = asset(name).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text)


def test_no_text_of_a_task_becomes_part_of_the_page() -> None:
    hostile = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)>"
    text = static_document(page(hostile))
    assert "alert(1)</script>" not in text
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)["head"]["title"] == hostile
    assert text.count("</script>") == 2


def test_one_file_runs_its_own_script_and_no_other() -> None:
    text = static_document(page())
    (code,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert f"script-src &#x27;sha256-{digest}&#x27;" in policy
    assert policy.startswith("default-src &#x27;none&#x27;")
    assert not re.search(r"""(?:src|href)=["'](?!#)""", text.replace(code, "")), "nothing is loaded"


def test_the_tail_of_the_newest_failure_is_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("out")
    (folder / "1.err").write_bytes(b"line\n" * 5000 + b"\xff\x1b[2Jthe cause\n")
    named = [msgspec.structs.replace(SUMS.failures[0], stderr=str(folder / "1.err"))]
    told = Told({api.GetTaskSums: msgspec.structs.replace(SUMS, failures=named)})
    (failure,) = read_details(told.live, running_bag(7)).failures
    lines = failure.stderr.splitlines()
    assert len(lines) == 20
    assert lines[-1].endswith("[2Jthe cause")
    assert "\x1b" not in failure.stderr
    (folder / "1.err").unlink()
    (folder / "1.err").symlink_to("/etc/hostname")
    (failure,) = read_details(told.live, running_bag(7)).failures
    assert failure.stderr == ""
