"""Rows in the formats that options of squeue and sacct ask for. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from adaptor.shims.fields import Field, Value
from adaptor.shims.jobs import Job

SQUEUE = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
SQUEUE_LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
SACCT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
SACCT_BRIEF = "jobid,state,exitcode"
_SACCT_WIDTHS = {"jobid": -12, "exitcode": 8, "start": 19, "end": 19, "submit": 19, "eligible": 19}
_SIGN = re.compile(r"%(?P<right>\.)?(?P<width>\d{1,4})?(?P<letter>[A-Za-z])|%%|[^%]+|%")
_ITEM = re.compile(r"(?P<name>[\w-]+)(?::(?P<right>\.)?(?P<left>-)?(?P<width>\d{1,4})?(?P<suffix>.*))?")
_USUAL_WIDTH = 20


class Column(msgspec.Struct, frozen=True):
    title: str
    value: Value
    width: int = 0
    """Width in characters, to which longer texts are cut; 0: any."""
    right: bool = False
    behind: str = ""  # text that follows it

    def cell(self, text: str, cut: str = "") -> str:
        if not self.width:
            return text + self.behind
        if len(text) > self.width:
            text = text[: self.width - len(cut)] + cut
        return (text.rjust(self.width) if self.right else text.ljust(self.width)) + self.behind


def _empty(_job: Job) -> str:
    return ""


_UNKNOWN = Field(_empty)


def of_letters(text: str, fields: Sequence[Field]) -> list[Column]:
    """The columns of `squeue --format`; letters that nothing is known of stay empty."""
    columns: list[Column] = []
    by_letter = {field.letter: field for field in fields if field.letter}
    for match in _SIGN.finditer(text):
        if match["letter"] is None:
            between = "%" if match[0] == "%%" else match[0]
            if columns:
                last = columns[-1]
                columns[-1] = msgspec.structs.replace(last, behind=last.behind + between)
            else:
                columns.append(Column("", _empty, behind=between))
            continue
        field = by_letter.get(match["letter"], _UNKNOWN)
        columns.append(Column(field.title, field.value, int(match["width"] or 0), bool(match["right"])))
    return columns


def of_names(text: str, fields: Sequence[Field]) -> list[Column]:
    """The columns of `squeue --Format`."""
    by_name = {name: field for field in fields for name in field.names.split()}
    columns = []
    for match in filter(None, (_ITEM.match(word.strip()) for word in text.split(","))):
        name = match["name"].lower()
        field = by_name.get(name, Field(_empty, title=name.upper()))
        width = int(match["width"] or _USUAL_WIDTH)
        columns.append(Column(field.title, field.value, width, bool(match["right"]), match["suffix"] or ""))
    return columns


def squeue_rows(columns: Sequence[Column], jobs: Iterable[Job], *, header: bool) -> Iterator[str]:
    if header:
        yield "".join(column.cell(column.title) for column in columns)
    for job in jobs:
        yield "".join(column.cell(column.value(job)) for column in columns)


def of_sacct(text: str, fields: Sequence[Field]) -> list[Column]:
    """The columns of `sacct --format`; names that nothing is known of stay empty."""
    known = {title.lower(): (title, field.value) for field in fields for title in field.sacct.split()}
    columns = []
    for part in filter(None, (word.strip() for word in text.split(","))):
        name, _, size = part.partition("%")
        title, value = known.get(name.lower(), (name, _empty))
        given = int(size) if re.fullmatch(r"-?\d{1,4}", size) else _SACCT_WIDTHS.get(name.lower(), 10)
        columns.append(Column(title, value, abs(given), given > 0))
    return columns


def sacct_rows(
    columns: Sequence[Column], jobs: Iterable[Job], *, header: bool, between: str, ends: bool
) -> Iterator[str]:
    """Rows of sacct. `between`: the delimiter of `--parsable`; empty: columns of fixed width. `ends`: it ends
    lines, too."""
    values: Callable[[Job], list[str]] = lambda job: [column.value(job) for column in columns]  # noqa: E731
    titles = [column.title for column in columns]
    if between:
        end = between if ends else ""
        rows = [titles] * header
        yield from (between.join(row) + end for row in rows)
        yield from (between.join(values(job)) + end for job in jobs)
        return
    if header:
        yield _line(columns, titles, "")
        yield " ".join("-" * column.width for column in columns) + " "
    for job in jobs:
        yield _line(columns, values(job), "+")


def _line(columns: Sequence[Column], texts: Sequence[str], cut: str) -> str:
    return " ".join(column.cell(text, cut) for column, text in zip(columns, texts, strict=True)) + " "
