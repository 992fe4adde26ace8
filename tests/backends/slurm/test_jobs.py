"""Our own jobs, from squeue and sacct (stand-ins print what the real ones did)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from adaptor.config.schema import SiteConfig
from adaptor.reports import JobReport, JobState, OwnJob
from backends.base import SchedulerError
from backends.slurm.backend import SlurmBackend
from backends.slurm.jobs import OwnSlurmJobs
from backends.slurm.rows import AccountingRow, QueueRow
from tests.backends.slurm.answers import FIXTURES, MARK, squeue_line
from tests.backends.slurm.slurm_rows import job

Fake = Callable[[str, str], Path]
Printing = Callable[[str], Path]


def backend() -> SlurmBackend:
    return SlurmBackend(SiteConfig(backend="slurm"))


@pytest.fixture
def printing(fake: Fake, fake_squeue: Printing) -> None:
    fake_squeue(f"cat {FIXTURES}/plain/own_jobs.txt")
    fake("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")


def line(id: str, state: str, name: str) -> str:
    """As squeue prints it, for printf."""
    values = {"JobArrayID": id, "State": state, "StartTime": "1795250000", "EndTime": "1795250400"}
    values |= {"Partition": "batch", "NumCPUs": "4", "NumNodes": "1", "TimeLimit": "30:00", "NodeList": "n1"}
    values |= {"SchedNodes": "(null)", "PriorityLong": "9", "Reason": "None", "Name": name}
    return squeue_line(values).replace("\n", "\\n")


def by_id(reports: list[JobReport]) -> dict[str, JobReport]:
    return {report.id: report for report in reports}


@pytest.mark.usefixtures("printing")
def test_jobs_are_found_by_id_and_by_tag() -> None:
    assert by_id(backend().jobs(["1", "9999"], "na")).keys() == {"1", "2"}
    assert backend().jobs([], "adaptor-") == []


@pytest.mark.usefixtures("printing")
def test_what_is_said_of_each() -> None:
    found = by_id(backend().jobs(["1", "4", "10", "14"], "no such tag"))
    assert found["1"] == JobReport(
        id="1",
        tag="wide",
        state=JobState.RUNNING,
        start=1795250485,
        granted=3600,
        processors=8,
        limit=3600,
        partition="batch",
        nodes=("n1", "n2"),
        held=8,
    )
    assert found["4"] == JobReport(
        id="4",
        tag="next",
        state=JobState.QUEUED,
        planned_start=1795254085,
        limit=1800,
        partition="batch",
        reason="Resources",
    )
    assert "PartitionTimeLimit" in found["10"].never
    cancelled = found["14"]
    assert (cancelled.state, cancelled.start, cancelled.end) == (JobState.CANCELLED, None, 1795250487)


def test_a_job_that_left_when_told_to_make_room_was_preempted(fake: Fake, fake_squeue: Printing) -> None:
    ends = {"7": "COMPLETED", "8": "COMPLETED", "9": "FAILED"}
    said = "".join(line(id, state, f"adaptor-{id}") for id, state in ends.items())
    fake_squeue(
        f"if [[ $* == *PreemptTime* ]]; then printf '7  1795250399\\n8  N/A\\n9  1795250399\\n'; "
        f"else printf '{said}'; fi"
    )
    fake("sacct", "exit 1")
    states = {id: report.state for id, report in by_id(backend().jobs([], "adaptor-")).items()}
    assert states == {"7": JobState.PREEMPTED, "8": JobState.COMPLETED, "9": JobState.PREEMPTED}


def test_each_job_is_asked_for_once_whether_it_was_told_to_make_room(
    fake: Fake, fake_squeue: Printing, tmp_path: Path
) -> None:
    asked, shown = tmp_path / "asked", tmp_path / "shown"
    fake_squeue(
        f"if [[ $* == *PreemptTime* ]]; then echo >> {asked}; echo '7  1795250399'; "
        f'else printf "$(cat {shown})"; fi'
    )
    fake("sacct", "exit 1")
    site = backend()

    def states(**ends: str) -> list[JobState]:
        shown.write_text("".join(line(id[1:], state, f"adaptor-{id}") for id, state in ends.items()))
        return [report.state for report in site.jobs([], "adaptor-")]

    assert states(_7="COMPLETED", _8="RUNNING") == [JobState.PREEMPTED, JobState.RUNNING]
    assert states(_7="COMPLETED", _8="RUNNING") == [JobState.PREEMPTED, JobState.RUNNING]
    assert asked.read_text() == "\n"
    assert states(_7="COMPLETED", _8="COMPLETED") == [JobState.PREEMPTED, JobState.COMPLETED]
    assert states(_7="PENDING", _8="COMPLETED") == [JobState.QUEUED, JobState.COMPLETED]
    assert asked.read_text() == "\n\n"
    assert states(_7="COMPLETED", _8="COMPLETED") == [JobState.PREEMPTED, JobState.COMPLETED]
    assert asked.read_text() == "\n\n\n", "it ran again"


@pytest.mark.parametrize(
    ("kind", "mode", "may"),
    [
        ("preempt/none", "CANCEL", False),
        ("preempt/partition_prio", "OFF", False),
        ("preempt/partition_prio", "REQUEUE", True),
        ("preempt/qos", "OFF", True),
        ("", "OFF", True),
    ],
)
def test_where_slurm_preempts_no_job_none_is_asked_for(
    fake: Fake, fake_squeue: Printing, tmp_path: Path, kind: str, mode: str, may: bool
) -> None:
    asked = tmp_path / "asked"
    ended = line("7", "COMPLETED", "adaptor-7")
    fake_squeue(f"if [[ $* == *PreemptTime* ]]; then echo >> {asked}; else printf '{ended}'; fi")
    fake("sacct", "exit 1")
    fake("sacctmgr", "exit 1")
    settings = f"ClusterName = c\nPreemptType = {kind}"
    rows = f"{FIXTURES}/22.05/partitions.txt | sed s/PreemptMode=OFF/PreemptMode={mode}/"
    fake("scontrol", f"case $2 in config) echo '{settings}';; partition) cat {rows};; *) exit 1;; esac")
    site = backend()
    site._shared.terms()
    assert [report.state for report in site.jobs([], "adaptor-")] == [JobState.COMPLETED]
    assert asked.exists() == may


def test_ended_jobs_that_squeue_forgot_are_asked_of_sacct_in_one_question(
    fake: Fake, fake_squeue: Printing, fake_sacct: Printing, tmp_path: Path
) -> None:
    fake_squeue("true")
    fake("scontrol", "exit 1")
    fake_sacct(f'echo "$*" >> {tmp_path}/asked; cat {FIXTURES}/22.05/accounting.txt')
    found = by_id(backend().jobs(["4", "6", "9999"], "no such tag"))
    assert found.keys() == {"4", "6"}
    assert (found["4"].state, found["4"].start, found["4"].end) == (
        JobState.CANCELLED,
        1795250071,
        1795250076,
    )
    assert (found["6"].start, found["6"].end, found["6"].nodes) == (1795250082, 1795250089, ("n1",))
    assert found["6"].held == 3, "what it had before it gave nodes back"
    questions = (tmp_path / "asked").read_text().splitlines()
    assert len([line for line in questions if " -j " in line]) == 1


def test_the_first_question_finds_lost_submits_by_their_tag(
    fake_squeue: Printing, fake_sacct: Printing
) -> None:
    fake_squeue("true")
    fake_sacct(f'[[ "$*" == *" -S "* ]] && cat {FIXTURES}/22.05/accounting.txt; true')
    site = backend()
    assert by_id(site.jobs([], "wra")).keys() == {"1", "2", "3", "4", "5"}
    assert site.jobs([], "wra") == []


def test_sacct_is_left_alone_once_it_failed(fake: Fake, fake_squeue: Printing, tmp_path: Path) -> None:
    fake_squeue("true")
    fake("scontrol", "exit 1")
    fake("sacct", f"echo asked >> {tmp_path}/asked; exit 1")
    site = backend()
    assert site.jobs(["1"], "x") == []
    assert site.jobs(["1"], "x") == []
    assert (tmp_path / "asked").read_text() == "asked\n"


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", "echo '1<|>RUNNING<|>'"])
def test_a_squeue_that_fails_or_prints_nonsense_is_no_answer(fake_squeue: Printing, script: str) -> None:
    fake_squeue(script)
    with pytest.raises(SchedulerError):
        backend().jobs(["1"], "x")


BLINDING = "x\\njob|999|RUNNING|x"
LYING = "x" + line("1", "FAILED", "adaptor-7").replace(MARK, "adaptor-0123456789abcdef")
CUT = "x\\fjob|999|RUNNING\\u2028job|"


@pytest.mark.parametrize("name", [BLINDING, LYING, CUT])
def test_the_name_of_a_job_cannot_pass_for_a_row_of_squeue(
    fake: Fake, fake_squeue: Printing, name: str
) -> None:
    fake_squeue(f"printf '{line('1', 'RUNNING', 'adaptor-7')}{line('2', 'RUNNING', name)}'")
    fake("sacct", "exit 1")
    (found,) = backend().jobs(["1"], "no such tag")
    assert (found.id, found.state, found.tag) == ("1", JobState.RUNNING, "adaptor-7")


@pytest.mark.parametrize("name", ["x\\n1|FAILED", "x\\n1|FAILED|1|2|n1|adaptor-7", "x\\fy", "x\\n\\n"])
def test_the_name_of_a_job_cannot_pass_for_a_row_of_sacct(
    fake: Fake, fake_squeue: Printing, name: str
) -> None:
    fake_squeue("true")
    rows = "1|COMPLETED|1|2|n1|4|adaptor-7\\n2|COMPLETED|1|2|n1|4|".replace("|", "${d}")
    fake("sacct", f'd=${{4#--delimiter=}}; printf "{rows}{name}\\n"')
    (found,) = backend().jobs(["1"], "no such tag")
    assert (found.id, found.state) == ("1", JobState.COMPLETED)


class Rows:
    """Questions whose answers are rows."""

    def __init__(self, *rows: QueueRow) -> None:
        self._rows = list(rows)

    def own_jobs(self) -> list[QueueRow]:
        return self._rows

    def accounting(self, ids: Collection[str]) -> list[AccountingRow]:
        return []

    def accounting_since(self, start: str) -> list[AccountingRow]:
        return []


@pytest.mark.parametrize(
    ("row", "whole_nodes", "told"),
    [
        (job("7", 6, node_count=2), False, (6, 600.0)),
        (job("7", 1), False, (1, 600.0)),
        (job("7", 3, node_count=3), False, (None, 600.0)),
        (job("7", 12, nodes=("n1", "n2", "n3")), False, (12, 600.0)),
        (job("7", 1), True, (None, 600.0)),
    ],
    ids=["tasks", "one processor", "three whole nodes", "running", "a site of whole nodes"],
)
def test_what_a_job_asks_for_now(row: QueueRow, whole_nodes: bool, told: tuple[int | None, float]) -> None:
    (report,) = OwnSlurmJobs(Rows(row), whole_nodes=whole_nodes).reports(["7"], "none")  # type: ignore[arg-type]
    assert (report.processors, report.limit) == told


def scontrol(
    config: str = "ClusterName = one", job: str = "Invalid job id specified", status: int = 1
) -> str:
    """A stand-in: what it prints of the configuration, and says of each job."""
    said = f"echo 'slurm_load_jobs error: {job}' >&2" if status else f"echo '{job}'"
    return f"case $2 in config) echo '{config}';; *) {said}; exit {status};; esac"


def test_jobs_that_slurm_denies_are_gone(fake: Fake, fake_squeue: Printing) -> None:
    fake_squeue(f"printf '{line('1', 'RUNNING', 'adaptor-x.1')}'")
    fake("sacct", "exit 1")
    fake("scontrol", scontrol())
    found = by_id(backend().jobs(["1", "2"], "adaptor-x."))
    assert {id: report.state for id, report in found.items()} == {"1": JobState.RUNNING, "2": JobState.GONE}
    assert found["2"].own == OwnJob("2", "")


def test_a_job_that_is_only_left_out_is_not_gone(fake: Fake, fake_squeue: Printing) -> None:
    fake_squeue("true")
    fake("sacct", "exit 1")
    fake("scontrol", scontrol(job="Unable to contact slurm controller"))
    assert backend().jobs(["2"], "adaptor-x.") == []


def test_an_answer_without_jobs_that_slurm_has_is_none(
    fake: Fake, fake_squeue: Printing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut, or every second line of it."""
    monkeypatch.setenv("LOGNAME", "ann")
    fake_squeue(f"printf '{line('1', 'RUNNING', 'adaptor-x.1')}'")
    fake("sacct", "exit 1")
    record = "JobId=2 JobName=adaptor-x.2 UserId={}(7) GroupId=all(7) JobState=PENDING"
    fake("scontrol", scontrol(job=record.format("ann"), status=0))
    with pytest.raises(SchedulerError, match="squeue left out job 2, which scontrol shows"):
        backend().jobs(["1", "2"], "adaptor-x.")
    fake("scontrol", scontrol(job=record.format("bob"), status=0))
    found = by_id(backend().jobs(["1", "2"], "adaptor-x."))
    assert found["2"].state is JobState.GONE, "its number is another user's job's"


def test_another_cluster_denies_nothing(fake: Fake, fake_squeue: Printing) -> None:
    fake_squeue("true")
    fake("sacct", "exit 1")
    fake("scontrol", scontrol())
    site = backend()
    assert [job.state for job in site.jobs(["2"], "adaptor-x.")] == [JobState.GONE]
    fake("scontrol", scontrol("ClusterName = two"))
    with pytest.raises(SchedulerError, match="cluster two answers in place of one"):
        site.jobs(["2"], "adaptor-x.")


@pytest.mark.parametrize("said", ["true", "echo; echo", "echo 'slurm_load_jobs error: whatever'"])
def test_an_answer_without_the_header_is_none(fake: Fake, said: str) -> None:
    fake("squeue", said)
    with pytest.raises(SchedulerError, match="no header"):
        backend().jobs(["1"], "x")


def test_what_a_site_prints_before_an_answer_is_left_out(fake: Fake, fake_squeue: Printing) -> None:
    fake("sacct", "exit 1")
    path = fake_squeue(f"printf '{line('1', 'RUNNING', 'adaptor-x.1')}'")
    lines = path.read_text().replace("{ ", "{ echo 'Warning: your password | expires'; echo 33; ", 1)
    path.write_text(lines)
    assert by_id(backend().jobs([], "adaptor-x.")).keys() == {"1"}


OURS = '{"tool":"request-adaptor","kind":"request","tag":"adaptor-x.%d"}'


def test_a_job_that_its_site_has_renamed_is_known_by_its_comment(fake: Fake, fake_squeue: Printing) -> None:
    commented = line("1", "RUNNING", "site-17").replace(
        f"(null){MARK}(null){MARK}", f"(null){MARK}{OURS % 1}{MARK}"
    )
    named = line("2", "RUNNING", "adaptor-x.2").replace(
        f"(null){MARK}(null){MARK}", f"(null){MARK}{OURS % 9}{MARK}"
    )
    fake_squeue(f"printf '{commented}{named}'")
    fake("sacct", "exit 1")
    assert {report.own for report in backend().jobs([], "adaptor-x.")} == {
        OwnJob("1", "adaptor-x.1"),
        OwnJob("2", "adaptor-x.2"),
    }


def test_the_end_of_a_job_whose_number_has_another_one_is_asked_of_sacct(
    fake: Fake, fake_squeue: Printing, fake_sacct: Printing
) -> None:
    """Its own records stand behind those of the other."""
    fake_squeue(f"printf '{line('7', 'RUNNING', 'mine')}'")
    fake_sacct(
        "printf '7|COMPLETED|1795250000|1795250400|n1|4|adaptor-x.7\\n"
        "7|RUNNING|1795260000|Unknown|n1|4|mine\\n'"
    )
    found = {report.tag: report.state for report in backend().jobs(["7"], "adaptor-x.")}
    assert found == {"mine": JobState.RUNNING, "adaptor-x.7": JobState.COMPLETED}
