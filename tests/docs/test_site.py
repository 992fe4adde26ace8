"""The site and the manual pages are built, and a warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.living import run_text
from tests.source_tree import ROOT

pytest.importorskip("sphinx", reason="needs the extra `docs`")

pytestmark = pytest.mark.timeout(900)


def build(kind: str, into: Path) -> None:
    done = run_text(
        [
            *(sys.executable, "-m", "sphinx", "-b", kind, "-n", "-W", "--keep-going", "-q"),
            *("-d", str(into / "doctrees"), str(ROOT / "docs"), str(into / kind)),
        ],
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


def test_the_site_has_every_page_and_needs_no_other_host(tmp_path: Path) -> None:
    build("html", tmp_path)
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert not [page for page in pages if not (tmp_path / "html" / page).is_file()]
    front = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    assert "<title>Request Adaptor" in front
    assert 'href="donation.html"' in front
    assert 'href="security.html"' in front
    for attribute in ('src="http', 'rel="stylesheet" href="http'):
        assert attribute not in front
    keys = (tmp_path / "html" / "reference" / "configuration.html").read_text(encoding="utf-8")
    assert ">max_pending_requests<" in keys


@pytest.mark.nightly  # `make docs` builds them too
def test_the_manual_pages_have_the_commands_the_options_and_the_keys(tmp_path: Path) -> None:
    build("man", tmp_path)
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "man").iterdir()}
    assert set(pages) == {"adaptor.1", "adaptor-bag.5", "adaptor-config.5"}
    assert r"adaptor \- bags of independent tasks" in pages["adaptor.1"]
    for wanted in (".SS adaptor submit", "EXIT STATUS", "ADAPTOR_DIR"):
        assert wanted in pages["adaptor.1"]
    assert "replicas" in pages["adaptor-bag.5"]
    assert "max_pending_requests" in pages["adaptor-config.5"]
