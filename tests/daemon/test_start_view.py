"""The forecasts of a site's partitions, arrays, the record of starts, and one look without a daemon."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor.api import GetStart, StartRecord
from adaptor.config.schema import SiteConfig
from adaptor.crafting.futures.run_shares import RunShares
from adaptor.daemon import start_view
from adaptor.daemon.start_view import (
    SiteSeen,
    check_question,
    read_start,
    record_of_starts,
    start_views,
    told,
)
from adaptor.errors import UsageError
from adaptor.forecast.asked import AskedRequest
from adaptor.forecast.kept_starts import JudgedStart, KeptStarts
from adaptor.forecast.past_waits import PastWait, Waiting
from adaptor.forecast.starts_seen import StartsSeen
from adaptor.journal.pilot_rows import PilotWait
from adaptor.model import Bound, EndedJob, PendingJob, QueueState, RunningJob
from backends.base import SchedulerError
from backends.ceilings import UNLIMITED, Ceilings
from backends.partitions import together
from tests.daemon.fake_site import FakeBackend

NOW = 1000.0
SHORT = QueueState(now=NOW, processors=4, running=(RunningJob("1", 4, NOW + 600),))
LONG = QueueState(now=NOW, processors=8, pending=(PendingJob("7_3", 8, 60.0), PendingJob("7_4", 8, 60.0)))
ASKED = GetStart(request=AskedRequest(tr=60.0, processors=4))


def seen(queue: QueueState, **more: object) -> SiteSeen:
    return SiteSeen(name="hpc", queue=queue, shares=RunShares(), look=1.0, **more)  # type: ignore[arg-type]


def test_each_partition_has_its_answer_and_closed_ones_say_why() -> None:
    site = seen(together({"short": SHORT, "long": LONG}, {"night": "it is down"}))
    found = told(ASKED, start_views(site, ASKED))
    assert [(view.partition, view.problem) for view in found] == [
        ("long", ""), ("short", ""), ("night", "it is down")]  # fmt: skip
    (only,) = start_views(site, msgspec.structs.replace(ASKED, partition="short"))
    assert only.partition == "short"
    with pytest.raises(UsageError, match="no partition 'day'; it has: short, long"):
        start_views(site, msgspec.structs.replace(ASKED, partition="day"))


def test_a_place_that_cannot_hold_it_comes_last() -> None:
    site = seen(together({"short": SHORT, "long": LONG}))
    asked = msgspec.structs.replace(ASKED, request=AskedRequest(tr=60.0, processors=8))
    first, last = told(asked, start_views(site, asked))
    assert (first.partition, last.partition) == ("long", "short")
    assert last.never == "it needs 8 processors, and there are 4"


def test_an_array_is_meant_by_its_number() -> None:
    (view,) = start_views(seen(LONG), GetStart(job="7"))
    assert view.job == "7_3"
    (view,) = start_views(seen(LONG), GetStart(job="7_4"))
    assert (view.job, view.planned) == ("7_4", NOW + 60)


def wait(predicted: float, started: float | None) -> PilotWait:
    return PilotWait(p=1, predicted_start=predicted, started=started, ended=None, submitted=0.0, tr=60)


def test_the_record_of_starts() -> None:
    waits = [wait(100, 100), wait(100, 160), wait(100, 1000), wait(500, 400), wait(100, 200), wait(1, None)]
    assert record_of_starts(waits) == StartRecord(starts=5, held=4, error=100.0, own=True)
    assert record_of_starts(waits[1:]) is None, "four are too few"


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    monkeypatch.setenv("ADAPTOR_DIR", str(tmp_path / "state"))
    backend = FakeBackend()
    monkeypatch.setattr(start_view, "make_backend", lambda *_: backend)
    return backend


def test_one_look_without_a_daemon_learns_from_the_records(backend: FakeBackend) -> None:
    config = SiteConfig(backend="slurm")
    backend.ended = [EndedJob("ann", 600.0, 60.0)] * 30
    (view,) = read_start("hpc", config, ASKED)
    assert view.start is not None
    assert not any("little is known" in words for words in view.remarks)
    silent = msgspec.structs.replace(config, read_history=False)
    (view,) = read_start("hpc", silent, ASKED)
    assert any("little is known" in words for words in view.remarks)


def test_what_does_not_answer_is_left_out_or_named(backend: FakeBackend) -> None:
    backend.ended_problem = SchedulerError("no accounting")
    (view,) = read_start("hpc", SiteConfig(backend="slurm"), ASKED)
    assert view.start is not None
    backend.silent = SchedulerError("squeue hangs")
    (view,) = read_start("hpc", SiteConfig(backend="slurm"), ASKED)
    assert view.problem == "squeue hangs"


def test_a_map_has_all_sizes_that_a_place_allows() -> None:
    hours = {
        "long": Ceilings(
            requests=UNLIMITED, processors=Bound(6, "QOS"), seconds=Bound(7200.0, "MaxTime"), whole=8, node=8
        )
    }
    site = seen(together({"short": SHORT, "long": LONG}, {"night": "it is down"}), ceilings=hours)
    asked = GetStart(map=True)
    short, long, night = sorted(
        told(asked, start_views(site, asked)), key=lambda view: view.partition != "short"
    )
    assert (night.map, night.problem) == (None, "it is down")
    assert short.map is not None
    assert long.map is not None
    assert long.map.processors == [1, 2, 4, 6]
    assert long.map.walltimes == [900.0, 3600.0, 7200.0]
    assert len(short.map.starts) == len(short.map.walltimes)
    (whole, *_) = (row[-1] for row in short.map.starts)
    assert whole is not None
    assert NOW < whole.value <= NOW + 600
    (one,) = start_views(site, GetStart(map=True, partition="short"))
    assert one == short


def test_a_place_that_takes_no_request_has_no_map_but_a_reason() -> None:
    (full,) = start_views(seen(LONG, limits={"": "4 jobs are the most"}), GetStart(map=True))
    assert (full.map, full.reason) == (None, "4 jobs are the most")
    (down,) = start_views(seen(QueueState(now=NOW, processors=0)), GetStart(map=True))
    assert (down.map, down.reason) == (None, "no processor is in service there")


def test_a_question_is_of_one_thing() -> None:
    for wrong in (GetStart(), GetStart(map=True, job="7"), msgspec.structs.replace(ASKED, map=True)):
        with pytest.raises(UsageError, match="for a request, for a job, or for the map"):
            check_question(wrong)
    check_question(GetStart(map=True))


def test_past_waits_are_mixed_in_where_they_came_nearer() -> None:
    """A job of the user waits; others with as much in front waited for hours, though the plan says now."""
    judged = JudgedStart(held=True, error=0.0, kind="now", score=0.0, ratios=(-2.0, 0.0, 3.0))
    mine = RunShares().hashed("ann")
    waits = tuple(PastWait(Waiting(4, 60.0, owner=mine, ahead=each % 2), 7200.0) for each in range(60))
    queue = msgspec.structs.replace(
        QueueState(now=NOW, processors=64, pending=(PendingJob("7", 4, 60.0),)), owners={"7": "ann"}
    )

    def wait_of(kept: KeptStarts) -> float:
        starts = StartsSeen(kept, RunShares().hashed)
        (view,) = start_views(seen(queue, starts=starts, user="ann"), ASKED)
        assert view.start is not None
        return view.start.value - NOW

    assert wait_of(KeptStarts(waits=waits)) == 0.0, "no record says that the plan is wrong"
    assert wait_of(KeptStarts((judged,) * 40, waits)) == pytest.approx(7200.0)
