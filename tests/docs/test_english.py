"""Pages, help and messages use plain English: no phrase of the list below, each with what to write."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from adaptor.cli.main import program
from tests.source_tree import ROOT

PAGES = (
    "README.md",
    "docs/index.md",
    "docs/howto.md",
    "docs/words.md",
    "docs/tutorial.md",
    "docs/bags.md",
    "docs/tasks.md",
    "docs/sizes.md",
    "docs/guard-rails.md",
    "docs/forecasts.md",
    "docs/sites.md",
    "docs/slurm.md",
    "docs/pbs.md",
    "docs/gridengine.md",
    "docs/ssh.md",
    "docs/login-node.md",
    "docs/donation.md",
    "docs/donation-agents.md",
    "docs/dashboard.md",
    "docs/snakemake.md",
    "docs/mcp.md",
    "docs/how-it-decides.md",
    "docs/completion.md",
    "docs/backends.md",
    "docs/releases.md",
    "docs/evidence.md",
    "docs/install.md",
    "docs/scripts.md",
    "docs/python.md",
    "docs/when-things-go-wrong.md",
    "docs/budget.md",
    "docs/budget-allocation.md",
    "docs/budget-experiment.md",
    "docs/replay.md",
    "docs/donation-experiment.md",
    "docs/house.md",
    "SECURITY.md",
)
"""The pages that are written so; add one as soon as it is."""

KEEPER = r"\bkeepers?\b"
"""In the code, a program of this name keeps a donated node."""
BANNED = {
    r"\b(is|are|be|was|were|been) told\b": "gets a message, learns, is given",
    r"\btold by\b": "found from",
    r"\btells? (of|the (daemon|worker|planner|user))\b": "reports, shows",
    r"\bso (many|long|much)\b": "n tasks, t seconds: name the number",
    r"\bwho knows\b": "if you know",
    r"\bheard (of|from)\b": "answered, known",
    r"\bborne\b|\bbears? with\b": "tolerated; extend, wait for",
    r"\bwithheld\b": "not submitted, held back (`withheld` in code is a kind of `adaptor why`)",
    r"\bas to\b": "about",
    r"\bit is that\b": "name the thing",
    r"\bbeside\b": "besides, next to, in addition to, with",
    r"[,;:] for (it|they|he|she|we|you|there|nothing)\b": "because",
    r"\b(no one|nobody|somebody|whoever|everybody|everyone)\b": "another user, users, n processes: name them",
    r"\b(strangers?|newcomers?|neighbours?|dawdl\w*)\b": "other users, processes: name them",
    KEEPER: "processes: name them",
    r"\banew\b": "again",
    r"\bagain and again\b": "repeatedly",
    r"\ball the same\b": "anyway",
    r"\bin the mean\b": "on average",
    r"\bforetold\b": "predicted",
    r"\bdear\b": "expensive",
    r"\b(is|are) bought\b": "requested, paid for",
    r"\bonce for all\b": "once and for all",
    r"\bbut for\b": "except",
    r"\bif wanted\b": "optionally",
    r"\bof which each\b": "each of which",
    r"\bas ever\b": "as usual",
    r"\b(is|are) held to\b|\bholds? (it|them|this|all this|the code|all) to\b": "tests check",
    r"\bhas the sentence\b|\bhave the sentence\b": "says",
    r"\bwhat is no\b|\b(is|are) no (failure|failures|retry)\b": "does not count as",
    r"\bas far as it is\b": "if it is",
    r"\bat so\b": "at n tasks: name the number",
}
"""Regular expression → what to write instead."""

INDIRECT = re.compile(
    r"(?:What|Those|That|Which|Who|Whose|How|When|Where|See|Of|It|They|As(?! `))\b|(?:None|Empty):"
)
"""Openings of docstrings that do not name the thing; `As `X.y`.` is for an override."""

LONGEST = 90
"""Words of a paragraph."""
MOST = 38_000
"""Words of all pages for users."""


def prose(text: str) -> str:
    """Without blocks (real output, examples of help), code, and the targets of links."""
    text = re.sub(r"^ *(```+|~~~+).*?^ *\1", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ *\x08\n.*?(?=^ *$)", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*(\n[^`\n]+)?`", "``", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def banned(text: str, *allowed: str) -> list[str]:
    """Each phrase of the list in the text, with what stands around it."""
    line = " ".join(prose(text).split())
    return [
        f"{line[max(0, found.start() - 30) : found.end() + 30]!r}: write {instead}"
        for phrase, instead in BANNED.items()
        if phrase not in allowed
        for found in re.finditer(phrase, line, re.IGNORECASE)
    ]


def paragraphs(text: str) -> Iterator[str]:
    """Those of a page, and the items of its lists; neither tables nor headings."""
    text = "\n".join(line for line in prose(text).splitlines() if not line.lstrip().startswith("|"))
    for part in re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )", text):
        if part.strip() and not part.startswith("#"):
            yield " ".join(part.split())


def helps(group: click.Group = program, path: str = "adaptor") -> Iterator[tuple[str, str]]:
    """What each command and each of its options says of itself."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", f"{command.help or ''}\n\n{command.short_help or ''}"
        for option in command.params:
            if isinstance(option, click.Option):
                yield f"{path} {name} {option.opts[0]}", option.help or ""
        if isinstance(command, click.Group):
            yield from helps(command, f"{path} {name}")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_banned_phrase(page: str) -> None:
    assert banned((ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_paragraph_is_read_in_half_a_minute(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [part for part in paragraphs(text) if len(part.split()) > LONGEST] == []


def test_the_pages_for_users_are_half_as_long_as_they_were() -> None:
    """Start here, guides, how it decides; not research, evidence, security and the map of the code."""
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    parts = re.findall(r':caption: "?(Start here|Guides[^"\n]*)"?\n\n(.*?)```', index, re.DOTALL)
    names = [line.split("<")[-1].strip("> ") for _, part in parts for line in part.split("\n") if line]
    pages = [ROOT / "README.md", *(ROOT / f"docs/{name}.md" for name in (*names, "how-it-decides"))]
    assert len(pages) > 20
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= MOST


def test_no_key_of_the_configuration_has_a_banned_phrase() -> None:
    from code_reference import config_groups

    groups = config_groups()
    texts = [text for group in groups for text in (group.about, *(key.meaning for key in group.keys))]
    assert [phrase for text in texts for phrase in banned(text)] == []


def test_no_help_has_a_banned_phrase() -> None:
    found = {where: banned(text) for where, text in helps()}
    assert {where: phrases for where, phrases in found.items() if phrases} == {}


def test_no_message_names_a_page_that_a_wheel_lacks() -> None:
    paths = sorted((*(ROOT / "adaptor").rglob("*.py"), *(ROOT / "backends").rglob("*.py")))
    found = {path: [text for text in messages(path) if re.search(r"docs/|\.md\b", text)] for path in paths}
    assert {path: texts for path, texts in found.items() if texts} == {}


def found_in(room: str, texts: Callable[[Path], Iterable[str]], *allowed: str) -> dict[str, list[str]]:
    """The banned phrases of each module of a folder that has some, in the texts of its kind."""
    found = {
        str(path.relative_to(ROOT)): banned("\n\n".join(texts(path)), *allowed)
        for path in sorted((ROOT / room).rglob("*.py"))
        if "tests" not in path.parts
    }
    return {path: phrases for path, phrases in found.items() if phrases}


@cache
def messages(path: Path) -> list[str]:
    """The texts of a module with two words or more, docstrings and comments aside."""
    return [*_messages(ast.parse(path.read_text(encoding="utf-8")))]


def _messages(tree: ast.Module) -> Iterator[str]:
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value if " " in node.value else ""


def docstrings(path: Path) -> Iterator[tuple[ast.Expr, str]]:
    """The docstrings of a module, those below its fields too, each with its place."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node, node.value.value.strip()


def remarks(path: Path) -> Iterator[str]:
    """The docstrings and comments of a module; without what they quote."""
    source = path.read_text(encoding="utf-8")
    for _, text in docstrings(path):
        yield re.sub(r'"[^"]*"', "", text)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@pytest.mark.parametrize("room", ["adaptor", "backends"])
def test_a_docstring_begins_with_its_subject(room: str) -> None:
    """A noun phrase names the thing, or a verb says what the function does; units and conditions follow."""
    found = {
        f"{path.relative_to(ROOT)}:{node.lineno}": text.split("\n")[0]
        for path in sorted((ROOT / room).rglob("*.py"))
        for node, text in docstrings(path)
        if INDIRECT.match(text)
    }
    assert found == {}


@pytest.mark.parametrize("room", ["adaptor", "backends", "plugins", "experiments"])
def test_no_docstring_and_no_comment_has_a_banned_phrase(room: str) -> None:
    found = found_in(room, remarks, KEEPER)
    assert {path: phrases for path, phrases in found.items() if "/completion/" not in path} == {}


@pytest.mark.parametrize(
    "room", ["adaptor", "backends", "plugins", "experiments/adaptor_experiments/commands"]
)
def test_no_message_has_a_banned_phrase(room: str) -> None:
    assert found_in(room, messages) == {}


def test_a_banned_phrase_is_found_but_not_in_code_or_output() -> None:
    text = "A worker that\nis told waits; `so many` and [a link](no one.md).\n```console\n$ who knows\n```\n"
    assert banned(text) == [
        "'A worker that is told waits; `` and [a link].': write gets a message, learns, is given"
    ]
