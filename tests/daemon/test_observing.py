"""What was learned of local jobs: kept over restarts without names, read once from the records."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest

from adaptor.crafting.futures.run_shares import KEPT, MOST, Ran
from adaptor.daemon.observing import keep_learned, look_at_pilots, read_history
from adaptor.daemon.step import step
from adaptor.decisions.pilots import LEFT_OUT, Absence
from adaptor.forecast.calibration import Raw
from adaptor.forecast.start import StartForecast
from adaptor.journal.pilot_rows import local_runs
from adaptor.model import EndedJob, Estimate, PendingJob, QueueState, RunningJob
from adaptor.reports import JobReport, JobState, OwnJob
from backends.base import SchedulerError
from tests.daemon.fake_site import FakeSite


def test_what_was_learned_is_there_after_a_restart_and_names_nobody(site: FakeSite) -> None:
    site.backend.ended = [EndedJob("ann-the-user", 600.0, 150.0)] * 20
    asyncio.run(read_history(site.state))
    keep_learned(site.state)
    before = site.state.memory.jobs.of_user("ann-the-user", 600.0)
    site.restart()
    assert len(site.state.memory.jobs) == 20
    assert site.state.memory.jobs.of_user("ann-the-user", 600.0) == before
    assert b"ann-the-user" not in b"".join(path.read_bytes() for path in site.directory.glob("journal*"))


def test_how_forecasts_of_starts_held_is_known_after_a_restart(site: FakeSite) -> None:
    start = Estimate(4.0, 5.0, 6.0)
    raw = Raw(kind="start", made=0.0, unit=10.0, ends=start)
    forecast = StartForecast(planned=5.0, start=start, before=None, raw=raw)
    queue = QueueState(now=0.0, processors=1, pending=(PendingJob("7", 1, 60.0),))
    runs = QueueState(now=9.0, processors=1, running=(RunningJob("7", 1, 68.0),), limits={"7": 60.0})
    site.state.starts.forecast(queue, lambda _: forecast, 1)
    site.state.starts.looked(runs)
    keep_learned(site.state)
    before = site.state.starts
    site.restart()
    found = site.state.starts
    assert found is not before
    assert (found.starts, found.held, found.error, found.scores) == (1, 0, 3.0, before.scores)


def test_only_the_newest_are_kept(site: FakeSite) -> None:
    site.journal.keep_local_runs("there", [Ran("", 60, 0.5)])
    site.journal.keep_local_runs("here", [Ran("", 60, 0.1)] * 5)
    site.journal.keep_local_runs("here", [Ran("x", 60, 0.9)] * KEPT)
    assert site.journal.read(local_runs, "here") == [Ran("x", 60, 0.9)] * KEPT
    assert site.journal.read(local_runs, "there") == [Ran("", 60, 0.5)]


def test_records_are_not_asked_where_the_site_forbids_it_or_enough_is_known(site: FakeSite) -> None:
    site.backend.ended = [EndedJob("ann", 600.0, 150.0)] * 20
    site.state.config = msgspec.structs.replace(site.state.config, read_history=False)
    asyncio.run(read_history(site.state))
    assert len(site.state.memory.jobs) == 0
    site.journal.keep_local_runs("here", [Ran("", 60, 0.5)] * MOST)
    site.restart()
    asyncio.run(read_history(site.state))
    assert len(site.state.memory.jobs) == MOST


@pytest.mark.parametrize("problem", [SchedulerError("sacct: no accounting"), ZeroDivisionError()])
def test_records_that_cannot_be_read_harm_nothing(site: FakeSite, problem: Exception) -> None:
    site.backend.ended_problem = problem
    asyncio.run(read_history(site.state))
    assert len(site.state.memory.jobs) == 0


def test_records_that_hang_hold_no_other_question_up(site: FakeSite) -> None:
    go_on = threading.Event()
    site.backend.ended_waits = go_on

    async def meanwhile() -> bool:
        reading = asyncio.create_task(read_history(site.state))
        await asyncio.sleep(0)
        answered = await site.state.ask(site.backend.queue_state) is not None
        pending = not reading.done()
        go_on.set()
        await reading
        return answered and pending

    assert asyncio.run(meanwhile())


@pytest.fixture
def queued(site: FakeSite) -> JobReport:
    """What the scheduler says of the only pilot."""
    site.submit_bag(1)
    asyncio.run(step(site.state))
    (report,) = site.backend.reports.values()
    return report


@pytest.mark.parametrize(
    ("name", "said", "told"),
    [
        ("slurm-1.out", "No module named 'adaptor'", "start on the nodes, with the adaptor installed?"),
        ("slurm-1.out", "the prologue failed with status 1 at: module load x", "module load x"),
        ("unreachable-n1.txt", "n1 has not reached the daemon", "set `daemon.host` to an address"),
        ("else", "", "failed; do the nodes see "),
    ],
)
def test_why_a_pilot_failed_before_any_worker_called_is_told_with_the_way_out(
    site: FakeSite, queued: JobReport, name: str, said: str, told: str
) -> None:
    folder = site.directory / "pilots" / "1"
    (folder / name).write_text(f"{said}\n")
    ended = msgspec.structs.replace(queued, state=JobState.FAILED, reason="failed", start=1.0, end=2.0)
    site.backend.reports = {queued.tag: ended}
    asyncio.run(step(site.state))
    ((_, state, reason), *_) = site.pilots()
    assert state == "failed"
    assert said in reason
    assert told in reason
    assert ("start on the nodes" in reason) is (name == "else" or "module named" in said)


def absence_of(site: FakeSite, *said: JobReport) -> Absence:
    """What an answer says of the only pilot, which it does not name; no job is to be cancelled."""
    site.backend.reports = {str(number): report for number, report in enumerate(said)}
    reply = asyncio.run(look_at_pilots(site.state))
    assert not reply.strays
    assert reply.pilots is not None
    (news,) = reply.pilots
    assert news.report is None
    return news.absence


def test_a_job_with_the_number_of_a_pilot_and_another_tag_is_neither_a_pilot_nor_a_stray(
    site: FakeSite, queued: JobReport
) -> None:
    for tag in ("mine", "", "adaptor-other.here.1"):
        mine = JobReport(id=queued.id, tag=tag, state=JobState.RUNNING, start=1.0)
        assert absence_of(site, mine) == Absence(other=tag or "without a name")
    assert site.backend.cancelled == []


def test_what_the_scheduler_denies_is_told_from_what_it_leaves_out(site: FakeSite, queued: JobReport) -> None:
    assert absence_of(site, JobReport(id=queued.id, tag="", state=JobState.GONE)) == Absence(denied=True)
    assert absence_of(site) == LEFT_OUT


def test_a_stray_has_a_tag_of_this_site(site: FakeSite, queued: JobReport) -> None:
    stray = JobReport(id="77", tag=f"{site.state.tag_prefix}99", state=JobState.QUEUED)
    ended = JobReport(id="78", tag=f"{site.state.tag_prefix}98", state=JobState.COMPLETED)
    other = JobReport(id="79", tag="mine", state=JobState.QUEUED)
    site.backend.reports |= {report.tag: report for report in (stray, ended, other)}
    asyncio.run(step(site.state))
    assert site.backend.cancelled == ["77"]


def test_of_two_jobs_with_the_tag_of_a_pilot_the_one_with_its_number_counts(
    site: FakeSite, queued: JobReport
) -> None:
    """The elements of an array have one name."""
    first, own = (
        JobReport(id=id, tag=queued.tag, state=JobState.QUEUED) for id in (f"{queued.id}0", queued.id)
    )
    site.backend.reports = {"1": own, "2": first}
    reply = asyncio.run(look_at_pilots(site.state))
    assert reply.pilots is not None
    assert [news.report for news in reply.pilots] == [own]
    site.backend.reports = {queued.tag: first}
    reply = asyncio.run(look_at_pilots(site.state))
    assert reply.pilots is not None
    assert [news.report for news in reply.pilots] == [first], "sbatch had named another number"


def test_orders_name_the_tag_beside_the_number(site: FakeSite, queued: JobReport) -> None:
    (pilot,) = site.state.pilots.values()
    site.state.memory.change(pilot, leaving="needless")
    site.backend.reports = {"1": JobReport(id=queued.id, tag="mine", state=JobState.RUNNING, start=1.0)}
    asyncio.run(step(site.state))
    assert site.backend.ordered == [OwnJob(queued.id, queued.tag)]
    assert site.backend.reports["1"].state is JobState.RUNNING
