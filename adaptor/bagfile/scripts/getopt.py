"""Words as options, by the rules of getopt_long(3): `-J name`, `-Jname`, `--job-name=name`, `--job name`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from adaptor.did_you_mean import did_you_mean


class Word(msgspec.Struct, frozen=True):
    """One word of a directive."""

    text: str
    line: int


def is_script(data: bytes) -> bool:
    """Whether a file is a script and no list of tasks."""
    return data.startswith(b"#!")


def comments(text: str) -> Iterator[tuple[int, str]]:
    """The numbers and the lines that begin with `#`, up to the first command."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#"):
            yield number, line
        elif line.strip() and not line.lstrip().startswith("#"):
            break


def directives(text: str, mark: str) -> list[tuple[int, str]]:
    """The numbers and the rest of the lines that begin with a mark, up to the first command."""
    found = []
    for number, line in comments(text):
        rest = line.removeprefix(mark)
        if rest != line and (not rest or rest[0].isspace() or rest[0] == "-"):
            found.append((number, rest))
    return found


_PIECE = re.compile(
    r"(?P<space>\s+)|(?P<comment>#.*)|(?P<quoted>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')"
    r"|\\(?P<escaped>.)|(?P<plain>[^\s#\"'\\]+)|(?P<lone>.)"
)
_ESCAPED = re.compile(r"\\(.)")


def words_of(rest: str, line: int) -> list[Word]:
    """The words of one directive. Raises ValueError: a quote has no end."""
    words: list[Word] = []
    word: str | None = None
    for piece in _PIECE.finditer(rest):
        if piece["comment"] is not None:
            break
        if piece["space"] is not None:
            words += [Word(word, line)] if word is not None else []
            word = None
            continue
        if piece["lone"] in ("'", '"'):
            raise ValueError(f"the quote {piece['lone']} has no end")
        quoted = _ESCAPED.sub(r"\1", piece["quoted"][1:-1]) if piece["quoted"] else ""
        word = (word or "") + (piece["escaped"] or piece["plain"] or quoted)
    return words + ([Word(word, line)] if word is not None else [])


Takes = Literal["value", "two values", "perhaps", "nothing"]
"""True if an option has a value; `perhaps`: only behind `=`."""


_LONGEST = 500  # characters of a message


class KnownOption(msgspec.Struct, frozen=True):
    """One option that a command knows."""

    name: str
    letter: str = ""
    takes: Takes = "value"


class GivenOption(msgspec.Struct, frozen=True):
    """One option of a script."""

    name: str
    value: str
    line: int
    shown: str
    """The option as it was written."""


class OptionError(ValueError):
    """An option of a script that cannot be had; `line` is the number of its line."""

    def __init__(self, line: int, problem: str, *, ignore: str = "", site: bool = False) -> None:
        """`ignore`: the name by which `--ignore` lets the script through; empty: the script has to change.

        `site`: a site that is named by `--site` lets it through too.
        """
        super().__init__(problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}…")
        self.line = line
        self.ignore = ignore
        self.site = site


class OptionTable:
    """The options of a command."""

    def __init__(self, command: str, known: Sequence[KnownOption], *, dash: str = "--") -> None:
        """`dash`: what stands before a name; with `-` none is abbreviated; empty: there are letters only."""
        self._command = command
        self._dash = dash
        self._long: Mapping[str, KnownOption] = {each.name: each for each in known} if dash else {}
        self._letters = {each.letter: each for each in known if each.letter}

    def read(
        self, words: Sequence[Word], ignored: Callable[[str], bool]
    ) -> tuple[list[GivenOption], list[OptionError]]:
        """The options without the ignored ones, which need not be known, and what cannot be read."""
        given: list[GivenOption] = []
        problems: list[OptionError] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            dash = self._dash or "--"
            long = word.text.startswith(dash) and word.text != "-"
            name, equals, _ = word.text.removeprefix(dash).partition("=")
            unknown = long and not self._begun_by(name)
            try:
                if unknown and ignored(name):
                    pass
                elif long and self._long:
                    given.append(self._read_long(word, rest))
                elif word.text.startswith("-") and len(word.text) > 1:
                    given += self._read_letters(word, rest)
                else:
                    problem = f"'{word.text}' is no option of {self._command}; quote a value that has spaces"
                    raise OptionError(word.line, problem)
            except OptionError as error:
                problems.append(error)
            if unknown:  # its values, if any
                while rest and not equals and rest[0].line == word.line and rest[0].text[:1] != "-":
                    rest.pop(0)
        return [each for each in given if not ignored(each.name)], problems

    def leading(self, words: Sequence[str]) -> tuple[list[GivenOption], list[str]]:
        """The options before the first word that is none, and the rest. Raises OptionError."""
        rest, given = [Word(word, 0) for word in words], list[GivenOption]()
        while rest and rest[0].text.startswith("-") and rest[0].text not in ("-", "--"):
            word = rest.pop(0)
            if word.text.startswith("--"):
                given.append(self._read_long(word, rest))
            else:
                given += self._read_letters(word, rest)
        if rest and rest[0].text == "--":
            rest.pop(0)
        return given, [word.text for word in rest]

    def _read_long(self, word: Word, rest: list[Word]) -> GivenOption:
        name, equals, value = word.text.removeprefix(self._dash).partition("=")
        known = self._by_name(name, word.line)
        if equals:
            if known.takes == "nothing":
                raise OptionError(word.line, f"{self._dash}{known.name} takes no value")
            return GivenOption(known.name, value, word.line, word.text)
        if "value" in known.takes:
            value = self._next(f"{self._dash}{known.name}", word, rest, known.takes)
            return GivenOption(known.name, value, word.line, f"{word.text} {value}")
        return GivenOption(known.name, "", word.line, word.text)

    def _by_name(self, name: str, line: int) -> KnownOption:
        """An option by its name or the beginning of it that no other has."""
        if name in self._long:
            return self._long[name]
        begun = self._begun_by(name) if name else []
        if len(begun) == 1:
            return begun[0]
        if begun:
            raise OptionError(line, f"--{name} may be any of --{', --'.join(sorted(e.name for e in begun))}")
        hint = did_you_mean(name, self._long, f"see {self._command}(1)", shown=f"{self._dash}{{}}")
        raise OptionError(line, f"{self._command} has no option {self._dash}{name} ({hint})", ignore=name)

    def _begun_by(self, name: str) -> list[KnownOption]:
        """The options that a name may mean."""
        whole = self._dash == "-"
        return [each for key, each in self._long.items() if (key == name if whole else key.startswith(name))]

    def _read_letters(self, word: Word, rest: list[Word]) -> list[GivenOption]:
        given = []
        text = word.text[1:]
        while text:
            letter, text = text[0], text[1:]
            known = self._letters.get(letter)
            if known is None:
                raise OptionError(word.line, f"{self._command} has no option -{letter}")
            if known.takes == "nothing":
                given.append(GivenOption(known.name, "", word.line, f"-{letter}"))
                continue
            if known.takes == "value" and not text:
                text = self._next(f"-{letter}", word, rest, known.takes)
            given.append(GivenOption(known.name, text, word.line, f"-{letter} {text}".rstrip()))
            break
        return given

    @staticmethod
    def _next(shown: str, word: Word, rest: list[Word], takes: Takes) -> str:
        count = 2 if takes == "two values" else 1
        if len(rest) < count:
            rest.clear()
            raise OptionError(word.line, f"{shown} needs {'two values' if count > 1 else 'a value'}")
        return " ".join(rest.pop(0).text for _ in range(count))
