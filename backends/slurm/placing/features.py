"""Expressions over the features of nodes (sbatch(1), `--constraint`): on which nodes a job may run. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import msgspec

Fits = Callable[[Collection[str]], bool]  # whether a node with these features is one on which the job may run

_TOKEN = re.compile(r"\s*([&|,()\[\]]|[^&|,()\[\]\s]+)")
_COUNTED = re.compile(r"(.+?)\*[0-9]+")
_LONGEST = 2000
_DEEPEST = 50


class Expression(msgspec.Struct, frozen=True):
    fits: Fits
    same: bool
    """Whether all nodes of a job must be alike in it (`[a|b]`), or a number of each (`a*2&b*1`): then a
    request may fit on fewer nodes at a time than fit each by itself."""


def parse_features(text: str) -> Expression:
    """`a&b`, `a,b`, `a|b`, `(a|b)&c`, `[a|b]`, `[a*2&b*1]`; from the left, as Slurm reads it.

    In brackets, and of features with counts, each alternative is one on which some node of a job may be.

    Raises:
        ValueError: it is none of these; the message says where.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"{text[:40]!r}… is too long")
    reader = _Reader(_tokens(text), text)
    fits = reader.alternatives(0, any_will_do=False)
    reader.end()
    return Expression(fits, reader.same)


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text[:40]!r} cannot be read from {text[at : at + 10]!r} on")
        tokens.append(match[1])
        at = match.end()
    return tokens


class _Reader:
    def __init__(self, tokens: list[str], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0
        self.same = False

    def alternatives(self, depth: int, *, any_will_do: bool) -> Fits:
        if depth > _DEEPEST:
            raise ValueError(f"{self._text[:40]!r} has too many brackets in each other")
        found, counted = self._term(depth)
        while self._next() in ("&", "|", ","):
            word = self._take()
            other, other_counted = self._term(depth)
            counted = counted or other_counted
            both = word != "|" and not counted and not any_will_do
            found = _both(found, other) if both else _either(found, other)
        self.same = self.same or counted
        return found

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._wrong()

    def _term(self, depth: int) -> tuple[Fits, bool]:
        word = self._take()
        if word in ("(", "["):
            inner = self.alternatives(depth + 1, any_will_do=word == "[")
            self.same = self.same or word == "["
            if self._take() != {"(": ")", "[": "]"}[word]:
                raise self._wrong()
            times = self._next()
            if times is not None and re.fullmatch(r"\*[0-9]+", times):
                self._take()
                return inner, True
            return inner, False
        if word in ("&", "|", ",", ")", "]", ""):
            raise self._wrong()
        counted = _COUNTED.fullmatch(word)
        return _has(counted[1] if counted else word), bool(counted)

    def _next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self) -> str:
        word = self._next()
        self._at += 1
        return word or ""

    def _wrong(self) -> ValueError:
        return ValueError(
            f"{self._text[:40]!r} is not an expression over features such as 'a&b', '(a|b)&c' or '[a|b]'"
        )


def _has(feature: str) -> Fits:
    return lambda features: feature in features


def _both(one: Fits, other: Fits) -> Fits:
    return lambda features: one(features) and other(features)


def _either(one: Fits, other: Fits) -> Fits:
    return lambda features: one(features) or other(features)
