"""Rows in the formats that options of squeue and sacct ask for. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from adaptor.shims.fields import LETTERS, Field
from adaptor.shims.jobs import Job

SQUEUE = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
SQUEUE_LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
SACCT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
SACCT_BRIEF = "jobid,state,exitcode"
_SACCT_WIDTHS = {"jobid": -12, "exitcode": 8, "start": 19, "end": 19, "submit": 19, "eligible": 19}
_SIGN = re.compile(r"%(?P<right>\.)?(?P<width>\d+)?(?P<letter>[A-Za-z])|%%|[^%]+|%")
_ITEM = re.compile(r"(?P<name>[\w-]+)(?::(?P<right>\.)?(?P<left>-)?(?P<width>\d+)?(?P<suffix>.*))?")
_USUAL_WIDTH = 20


class Column(msgspec.Struct, frozen=True):
    title: str
    value: Field
    width: int = 0
    """0: any. Longer texts are cut."""
    right: bool = False
    behind: str = ""
    """What follows it."""

    def cell(self, text: str, cut: str = "") -> str:
        if not self.width:
            return text + self.behind
        if len(text) > self.width:
            text = text[: self.width - len(cut)] + cut
        return (text.rjust(self.width) if self.right else text.ljust(self.width)) + self.behind


def _empty(_job: Job) -> str:
    return ""


def of_letters(text: str, fields: Mapping[str, Field]) -> list[Column]:
    """The columns of `squeue --format`; letters that nothing is known of stay empty."""
    columns: list[Column] = []
    for match in _SIGN.finditer(text):
        if match["letter"] is None:
            between = "%" if match[0] == "%%" else match[0]
            if columns:
                last = columns[-1]
                columns[-1] = msgspec.structs.replace(last, behind=last.behind + between)
            else:
                columns.append(Column("", _empty, behind=between))
            continue
        name, title = LETTERS.get(match["letter"], ("", ""))
        columns.append(
            Column(title, fields.get(name, _empty), int(match["width"] or 0), bool(match["right"]))
        )
    return columns


_TITLES = {
    "jobarrayid": "JOBID", "timeused": "TIME", "timelimit": "TIME_LIMIT", "username": "USER", "userid": "UID",
    "statecompact": "ST", "numnodes": "NODES", "numcpus": "CPUS", "numtasks": "TASKS",
    "starttime": "START_TIME", "endtime": "END_TIME", "submittime": "SUBMIT_TIME", "timeleft": "TIME_LEFT",
    "workdir": "WORK_DIR",
    "reasonlist": "NODELIST(REASON)", "arrayjobid": "ARRAY_JOB_ID", "arraytaskid": "ARRAY_TASK_ID",
}  # fmt: skip


def of_names(text: str, fields: Mapping[str, Field]) -> list[Column]:
    """The columns of `squeue --Format`."""
    columns = []
    for part in filter(None, (word.strip() for word in text.split(","))):
        match = _ITEM.match(part)
        name = match["name"].lower() if match else ""
        width = _USUAL_WIDTH if match is None or match["width"] is None else int(match["width"])
        right, suffix = (bool(match["right"]), match["suffix"] or "") if match else (False, "")
        title = _TITLES.get(name, name.upper())
        columns.append(Column(title, fields.get(name, _empty), width, right, suffix))
    return columns


def squeue_rows(columns: Sequence[Column], jobs: Iterable[Job], *, header: bool) -> Iterator[str]:
    if header:
        yield "".join(column.cell(column.title) for column in columns)
    for job in jobs:
        yield "".join(column.cell(column.value(job)) for column in columns)


def of_sacct(text: str, fields: Mapping[str, tuple[str, Field]]) -> list[Column]:
    """The columns of `sacct --format`; names that nothing is known of stay empty."""
    columns = []
    for part in filter(None, (word.strip() for word in text.split(","))):
        name, percent, size = part.partition("%")
        name = name.lower()
        title, value = fields.get(name, (part.partition("%")[0], _empty))
        usual = _SACCT_WIDTHS.get(name, 10)
        width = int(size) if percent and re.fullmatch(r"-?\d+", size) else usual
        columns.append(Column(title, value, abs(width), width > 0))
    return columns


def sacct_rows(
    columns: Sequence[Column], jobs: Iterable[Job], *, header: bool, between: str, ends: bool
) -> Iterator[str]:
    """`between`: the delimiter of `--parsable`; empty: columns of fixed width. `ends`: it ends lines, too."""
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
