"""How Sphinx makes pages and manual pages of this folder: `make docs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from pygments.lexers.special import TextLexer

from adaptor import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Request Adaptor"
author = "The Request Adaptor developers"
project_copyright = "2026, The Request Adaptor developers"
release = __version__
version = __version__.partition("+")[0]

extensions = ["myst_parser"]
smartquotes = False  # they would change `--option` and quoted text
exclude_patterns = ["_ext"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"Request Adaptor {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7fb8e0", "color-brand-content": "#7fb8e0"},
}

man_pages = [
    ("reference/commands", "adaptor", "bags of independent tasks on a cluster", author, 1),
    ("reference/bag-options", "adaptor-bag", "options of a bag of tasks", author, 5),
    ("reference/configuration", "adaptor-config", "configuration of sites and daemon", author, 5),
]

_TABLES_OF_TESTS = ("floors", "daemon", "clocks", "request", "task", "question")
"""Blocks of docs/house.md that tests read: no programming language."""


def _links_of_the_root(text: str) -> str:
    """Links between this folder and the pages beside it, which the site includes as pages of its own."""
    for there, here in (
        ("../README.md", "index.md"),
        ("../SECURITY.md", "security.md"),
        ("../CHANGELOG.md", "changelog.md"),
        ("../CONTRIBUTING.md", "contributing.md"),
        ("../CITATION.cff", "references.md"),
        ("](SECURITY.md", "](security.md"),
        ("](CONTRIBUTING.md", "](contributing.md"),
        ("](CITATION.cff", "](references.md"),
        ("](CHANGELOG.md", "](changelog.md"),
        ("](docs/", "]("),
    ):
        text = text.replace(there, here)
    return text


def _on_read(_app: Sphinx, docname: str, source: list[str]) -> None:
    if docname not in (
        "index",
        "security",
        "changelog",
        "contributing",
    ):  # which include pages of the root
        source[0] = _links_of_the_root(source[0])


def _on_include(_app: Sphinx, _path: Path, _docname: str, source: list[str]) -> None:
    source[0] = _links_of_the_root(source[0])


def _plain_in_the_manual(app: Sphinx, doctree: nodes.document, _docname: str) -> None:
    """A manual page cannot follow a link to another page, so the link is its text."""
    if app.builder.name == "man":
        for link in list(doctree.findall(nodes.reference)):
            if not link.get("refuri", "").startswith("http"):
                link.replace_self(link.children)


def setup(app: Sphinx) -> None:
    for name in _TABLES_OF_TESTS:
        app.add_lexer(name, TextLexer)
    app.connect("source-read", _on_read)
    app.connect("include-read", _on_include)
    app.connect("doctree-resolved", _plain_in_the_manual)
