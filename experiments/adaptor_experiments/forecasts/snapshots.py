"""Snapshots of a queue with the later starts of its jobs, where no whole log is known: columns by name (CSV).

As of mila-iqia/slurm-queue-time-pred: a file for the noon of each day, with all jobs that waited. The running
jobs and the nodes are not in them, so nothing can be planned; starts are forecast by past waits alone.
"""

from __future__ import annotations

import csv
import io
import random
import re
import tarfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median

import msgspec

from adaptor.forecast.calibration import LOOKS, Raw
from adaptor.forecast.past_by_shape import PastByShape
from adaptor.forecast.past_waits import KEPT, WEIGHTS, ByPast, PastWait, PastWaits, Waiting
from adaptor.units import counted
from adaptor_experiments.forecasts.history import Span
from adaptor_experiments.forecasts.replayed import Case, by_past, by_right_record, mixed_by_past
from adaptor_experiments.forecasts.start_tables import MEASURES, NEAR, covers, measures
from adaptor_simulation.files import TraceError, naming

_COLUMNS = (
    "poll_time",
    "submit_time",
    "start_time",
    "req_cpus",
    "time_limit_sec",
    "req_tres",
    "account_id",
    "q_a_jobs_above",
)
_ANSWERS = ("true_start_time", "estimate_start_time")
"""Columns of a file with starts and the earlier answers of `sbatch --test-only`."""
_GPUS = re.compile(r"gres/gpu[^=]*=([1-9])")
_ALL = 300  # waits of all shapes that count for the plainest forecast
_LOOK = 60.0


class Polled(msgspec.Struct, frozen=True):
    """A job that waited when the queue was polled. Seconds."""

    at: float
    """Epoch seconds of the poll."""
    seen: PastWait
    """Facts about the job at the poll, and its wait from then."""

    @property
    def started(self) -> float:
        return self.at + self.seen.wait


class Snapshots(msgspec.Struct, frozen=True):
    polled: list[Polled]
    """In the order of the polls."""
    errors: list[float]
    """Errors of answers of `--test-only`, seconds; empty: there are none."""
    notes: list[str]


class Foretold(msgspec.Struct, frozen=True):
    """A forecast of the wait from a poll on."""

    polled: Polled
    past: ByPast
    shape: float
    """By the waits of its shape: the floor."""
    every: float
    """By the newest of all."""


def read_snapshots(folder: Path) -> Snapshots:
    """All `.csv` of a folder and of the `.tar`, `.tar.gz` and `.tar.xz` in it.

    Raises TraceError: a file cannot be read, or none has snapshots.
    """
    polled, errors, left_out, seen = list[Polled](), list[float](), Counter[str](), set[tuple[str, float]]()
    for name, text in _texts(folder):
        rows = csv.DictReader(text)
        columns = rows.fieldnames or ()
        if all(column in columns for column in _ANSWERS):
            errors += [abs(_time(row, _ANSWERS[1], name) - _time(row, _ANSWERS[0], name)) for row in rows]
        elif "poll_time" in columns:
            if missing := [column for column in _COLUMNS if column not in columns]:
                raise TraceError(f"{name}: a snapshot needs the column {missing[0]}")
            for row in rows:
                job, why = _job(row, name)
                key = row.get("job_unique_id") or "", job.at
                if not why and key[0] and key in seen:
                    why = "twice in a snapshot"
                seen.add(key)
                if why:
                    left_out[why] += 1
                else:
                    polled.append(job)
    if not polled:
        raise TraceError(
            f"{folder}: no snapshot of a queue there: a CSV file with the columns {', '.join(_COLUMNS)}"
        )
    polled.sort(key=lambda job: job.at)
    return Snapshots(polled, errors, [f"{counted(n, 'job')} left out: {why}" for why, n in left_out.items()])


def _texts(folder: Path) -> Iterator[tuple[str, Iterable[str]]]:
    with naming(folder, TraceError):
        paths = sorted(folder.iterdir())
    for path in paths:
        try:
            if path.suffix == ".csv":
                yield str(path), path.read_text("utf-8").splitlines()
            elif ".tar" in path.suffixes:
                with tarfile.open(path) as archive:
                    for member in archive:
                        file = archive.extractfile(member) if member.name.endswith(".csv") else None
                        if file is not None:
                            yield f"{path}/{member.name}", io.TextIOWrapper(file, "utf-8")
        except (OSError, EOFError, UnicodeDecodeError, tarfile.TarError) as error:
            told = " ".join(str(error).split())
            raise TraceError(f"{path}: {told}; fetch it again") from error


def _job(row: Mapping[str, str], name: str) -> tuple[Polled, str]:
    """The job, and why it does not count."""
    at, submitted, start = (_time(row, column, name) for column in ("poll_time", "submit_time", "start_time"))
    processors, limit, ahead = (
        _number(row, each, name) for each in ("req_cpus", "time_limit_sec", "q_a_jobs_above")
    )
    why = ""
    if start < at:
        why = "they started before the snapshot"
    elif submitted > at:
        why = "they were submitted after the snapshot"
    elif processors < 1 or limit <= 0:
        why = "no processors or no time limit known"
    seen = Waiting(
        processors=round(processors),
        limit=limit,
        gpus=_GPUS.search(row["req_tres"] or "") is not None,
        owner=row["account_id"] or "",
        ahead=round(ahead),
        waited=at - submitted,
    )
    return Polled(at, PastWait(seen, start - at)), why


def _time(row: Mapping[str, str], column: str, name: str) -> float:
    try:
        return datetime.fromisoformat(row[column]).timestamp()
    except (ValueError, TypeError):
        raise TraceError(
            f"{name}: {column}: {row[column]!r} is no time such as 2021-05-01 12:00:00"
        ) from None


def _number(row: Mapping[str, str], column: str, name: str) -> float:
    try:
        return float(row[column] or 0.0)
    except (ValueError, TypeError):
        raise TraceError(f"{name}: {column}: {row[column]!r} is no number") from None


def foretell(snapshots: Snapshots, sample: int, seed: int, span: Span | None = None) -> list[Foretold]:
    """The forecasts of some jobs of each snapshot, from those of earlier ones that had started by then.

    Args:
        sample: jobs of each snapshot that are followed, at random, as many as a daemon follows.
        span: of the time of the snapshots whose jobs are forecast; those before are only learned from.
    """
    draw = random.Random(seed)  # noqa: S311
    by_poll: dict[float, list[Polled]] = {}
    for job in snapshots.polled:
        by_poll.setdefault(job.at, []).append(job)
    first, last = min(by_poll), max(by_poll)
    found, followed = list[Foretold](), list[Polled]()
    for at, jobs in by_poll.items():
        known = sorted((job for job in followed if job.started <= at), key=lambda job: job.started)
        past, shapes = PastWaits([job.seen for job in known[-KEPT:]]), PastByShape()
        for job in known:
            shapes.started(*_shape(job), wait=job.seen.wait)
        every = deque((job.seen.wait for job in known), maxlen=_ALL)
        some = draw.sample(jobs, min(sample, len(jobs)))
        followed += some
        share = (at - first) / max(1.0, last - first)
        if span is not None and not span[0] <= share <= span[1]:
            continue
        for job in some:
            by_past, shape = past.of(job.seen.job), shapes.like(*_shape(job))
            if by_past is not None and shape is not None:
                found.append(Foretold(job, by_past, shape.value, median(every)))
    return found


def _shape(job: Polled) -> tuple[int, float, int]:
    return job.seen.job.processors, job.seen.job.limit, int(job.seen.job.gpus)


HEADINGS = ("forecast", "n", *MEASURES)


def near_table(rows: Sequence[Foretold], errors: Sequence[float]) -> Iterator[tuple[str, ...]]:
    """`errors`: of answers of `--test-only`, whose submissions are not known: no ratios."""
    waits = [row.polled.seen.wait for row in rows]
    ways = {
        "mixed": [case.raw.ends.value for case in _mixed(rows)],
        "like jobs": [row.past.like.value for row in rows],
        "past waits by shape": [row.shape for row in rows],
        "past waits of all": [row.every for row in rows],
    }
    for name, told in ways.items():
        yield name, str(len(rows)), *measures(told, waits)
    if errors:
        near = (sum(error <= most for error in errors) / len(errors) for most in NEAR.values())
        yield (
            "--test-only",
            str(len(errors)),
            *(f"{share:.0%}" for share in near),
            *("",) * (len(MEASURES) - len(NEAR)),
        )


COVER_HEADINGS = ("interval", "held", "median width", "upper held", "median upper")


def cover_table(rows: Sequence[Foretold]) -> Iterator[tuple[str, ...]]:
    """Share of starts in the intervals: of like jobs, and calibrated by what had started by then."""
    waits = [row.polled.seen.wait for row in rows]
    mixture = _mixed(rows)
    yield "mixed", *covers([case.raw.ends for case in mixture], waits)
    ends = by_past(mixture)
    yield "mixed, by its past", *covers(ends, waits)
    right = by_right_record(mixture, ends)
    for name, told in (("while the record was right", True), ("while too little was known", False)):
        some = [place for place, each in enumerate(right) if each is told]
        if some:
            share = f"{name} ({len(some) / len(rows):.0%})"
            yield share, *covers([ends[place] for place in some], [waits[place] for place in some])


_NO_PLAN = [weights for weights in WEIGHTS if not weights[0]]


def _mixed(rows: Sequence[Foretold]) -> list[Case]:
    """As `adaptor when` would have said, if no plan counted."""
    return mixed_by_past([_case(row) for row in rows], [row.past for row in rows], _NO_PLAN)


def _case(row: Foretold) -> Case:
    raw = Raw(kind="start", made=0.0, unit=LOOKS * _LOOK, ends=row.past.like)
    return Case(site="", machine="", instant=row.polled.at, raw=raw, came=row.polled.seen.wait)
