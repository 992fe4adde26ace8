"""What scontrol says of jobs, on each release, whatever users write."""

from __future__ import annotations

import re
from collections.abc import Callable
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.resources import Part
from backends.base import SchedulerError
from backends.observed import remembered
from backends.slurm import parse, questions
from backends.slurm.placing import job_details
from backends.slurm.placing.job_details import JobDetail, JobWish, parse_only_job
from backends.slurm.placing.job_records import JobRecords
from backends.slurm.questions import Questions, SlurmReading
from backends.slurm.rows import QueueRow
from tests.backends.slurm.answers import MARK, RELEASES, Answers, recorded, squeue_line
from tests.backends.slurm.record import LIE
from tests.examples import examples

MIB = 2**20


@pytest.fixture
def details(reading: SlurmReading, rows: dict[str, QueueRow]) -> dict[str, JobDetail]:
    """By the names of the jobs."""
    return {name: reading.job_details.found[row.id] for name, row in rows.items()}


def wish(details: dict[str, JobDetail], name: str) -> JobWish:
    found = details[name].wish
    assert found is not None
    return found


def test_every_job_that_squeue_shows_has_its_details(reading: SlurmReading) -> None:
    assert reading.job_details.found.keys() == {row.id for row in reading.jobs}
    assert reading.job_details.unread == ()
    assert {detail.user for detail in reading.job_details.found.values()} == {"root"}


def test_parts_of_running_and_suspended_jobs(details: dict[str, JobDetail], reading: SlurmReading) -> None:
    assert details["uneven"].parts == tuple(
        Part(node=node, processors=4, memory=400 * MIB) for node in ("n3", "n4")
    )
    assert details["asleep"].parts == (Part(node="n3", processors=1, memory=300 * MIB, gpus=(("", 1),)),)
    assert details["per-gpu"].parts == (Part(node="n3", processors=1, memory=70 * MIB, gpus=(("", 1),)),)
    assert reading.job_details.found["4_1"].parts == (Part(node="n2", processors=1, memory=200 * MIB),)
    assert details["licensed"].licenses == "matlab:1"


def test_what_jobs_have_for_themselves(details: dict[str, JobDetail]) -> None:
    words = {name: detail.exclusive for name, detail in details.items() if detail.exclusive}
    words.pop("by-segment", None)  # `--exclusive=topo` came after 22.05
    assert words == {
        "alone": "NODE",
        "pair": "NODE",
        "in-whole": "NODE",
        "by-user": "USER",
        "in-user": "USER",
        "by-label": "MCS",
    }
    assert details.get("by-segment", JobDetail(exclusive="TOPO")).exclusive == "TOPO"


def test_wishes_of_waiting_jobs(details: dict[str, JobDetail]) -> None:
    assert wish(details, "tasks") == JobWish(
        tasks=3,
        processors_per_task=3,
        nodes=wish(details, "tasks").nodes,
        fixed=False,
        memory_per_processor=200 * MIB,
        features="new|old",
    )
    assert wish(details, "pair") == JobWish(
        tasks=2, processors_per_task=1, nodes=2, fixed=True, features="[new|old]", excluded="n1"
    )
    assert wish(details, "gpus") == JobWish(
        tasks=4,
        processors_per_task=1,
        nodes=2,
        fixed=False,
        memory_per_gpu=300 * MIB,
        gpus_per_task=(("", 1),),
        required="n3",
    )
    assert wish(details, "all").gpus_per_job == (("a100", 2),)
    assert wish(details, "fast").memory_per_node == 3 * 2**30
    assert wish(details, "many").memory_per_node == 200 * MIB


def test_the_lies_of_the_scene_change_nothing(answered: Callable[[str], str]) -> None:
    """The name of one job, and account, comment, command and more of another, imitate a record of job 1."""
    answers = Answers(answered)
    asking = Questions(answers)
    found = asking.job_details(asking.queue()).found
    assert answers.asked_alone == ["1"]
    assert found["5"].parts == (Part(node="n2", processors=1, memory=50 * MIB),)
    assert (found["5"].licenses, found["5"].exclusive) == ("", "")
    assert found["10"].wish is not None
    assert (found["10"].wish.gpus_per_job, found["10"].wish.required) == ((), "n4")


def test_parts_of_several_kinds(answered: Callable[[str], str], rows: dict[str, QueueRow]) -> None:
    text = re.sub(
        r"Nodes=n\[3-4\] CPU_IDs=0-3 Mem=400 GRES=",
        "Nodes=n[1-2],x CPU_IDs=0-3,8,10-11 Mem=700 GRES=gpu:a100:2(IDX:0-1),nic:1"
        "   Nodes=n7 CPU_IDs=5 Mem=0 GRES=(null)",
        answered("job_details-alone"),
    )
    found = parse_only_job(text, rows["uneven"])
    assert found is not None
    assert found.parts == (
        *(Part(node=node, processors=7, memory=700 * MIB, gpus=(("a100", 2),)) for node in ("n1", "n2", "x")),
        Part(node="n7", processors=1),
    )


def test_an_answer_about_one_job_is_believed_only_at_its_beginning(
    answered: Callable[[str], str], rows: dict[str, QueueRow]
) -> None:
    """The job was renamed in between, and its comment imitates its old record."""
    record = answered("job_details-alone")
    renamed = record.replace("JobName=uneven", "JobName=other").rstrip() + f" Comment=\n{record}"
    assert parse_only_job(record, rows["uneven"]) is not None
    assert parse_only_job(renamed, rows["uneven"]) is None


def test_shards_and_parts_of_gpus_are_told_apart(
    answered: Callable[[str], str], rows: dict[str, QueueRow]
) -> None:
    """Of a GPU that is cut (MIG) each part is a GPU with a type of its own; shards of a GPU are none."""
    for gres, gpus in (
        ("gpu:1g.5gb:2(IDX:0-1)", (("1g.5gb", 2),)),
        ("shard:4(0/4,0/4)", ()),
        ("gpu:a100:1(IDX:3),shard:a100:2(2/4)", (("a100", 1),)),
        ("gpu:2", (("", 2),)),
    ):
        text = answered("job_details-alone").replace("Mem=400 GRES=", f"Mem=400 GRES={gres}")
        found = parse_only_job(text, rows["uneven"])
        assert found is not None
        assert {part.gpus for part in found.parts} == {gpus}


def test_a_record_of_another_form_is_reported(
    answered: Callable[[str], str], rows: dict[str, QueueRow]
) -> None:
    text = answered("job_details-alone").replace(" JobState=", " Estado=")
    details = JobRecords().read(text.encode(), {"1": rows["uneven"]})
    assert (details.found, details.unread) == ({}, ("1",))


@pytest.mark.parametrize("text", ["", "\n", "No jobs in the system\n"])
def test_no_jobs(text: str) -> None:
    assert JobRecords().read(text.encode(), {}).found == {}


def test_what_is_no_answer_about_jobs() -> None:
    with pytest.raises(SchedulerError, match="'Segmentation fault'"):
        JobRecords().read(b"Segmentation fault", {})


def test_no_more_than_some_jobs_are_asked_for_alone(
    monkeypatch: pytest.MonkeyPatch, answered: Callable[[str], str]
) -> None:
    monkeypatch.setattr(questions, "MOST_DISPUTED", 0)
    asking = Questions(Answers(answered))
    details = asking.job_details(asking.queue())
    assert details.disputed == ("1",)
    assert "1" not in details.found


FREE_TEXT = ("Account", "Comment", "Command", "SubmitLine", "WorkDir", "StdErr", "StdIn", "StdOut", "Network")
IDS = ("1", "2", "6", "12", "14", "15")
"""Jobs of the scene: running and waiting, plain ones."""


def _lines(release: str) -> dict[str, str]:
    """The records of these jobs, with a place for each free text."""
    text = recorded(release)("job_details-alone") + recorded(release)("job_details")
    found = {}
    for id in IDS:
        line = next(line for line in text.splitlines() if re.match(rf"JobId={id} JobName=[a-z]+ ", line))
        line = re.sub(r"JobName=\S+", "JobName={JobName}", line)
        line = re.sub(r"Account=\S+", "Account={Account}", line)
        line = line.split(" Network=")[0] + "".join(
            f" {key}={{{key}}}" for key in ("Network", *FREE_TEXT[1:-1])
        )
        found[id] = line + " TresPerNode=gres/gpu:1"
    return found


LINES = {release: _lines(release) for release in RELEASES}
ROWS = {
    release: {
        row.id: row for row in parse.parse_queue(recorded(release)("queue").encode(), MARK) if row.id in IDS
    }
    for release in RELEASES
}
PIECES = st.one_of(
    st.sampled_from([LIE, "\n", " ", "JobId=2 JobName=", " Network=", " UserId=root(0) ", "(null)", MARK]),
    st.tuples(st.sampled_from(RELEASES), st.sampled_from(IDS)).map(
        lambda job: (
            "\n"
            + re.sub(r"\{\w+\}", "(null)", LINES[job[0]][job[1]])
            .replace("Mem=", "Mem=9")
            .replace("NumTasks=", "NumTasks=7")
            .replace("OverSubscribe=OK", "OverSubscribe=NO")
            + "\n"
        )
    ),
    st.sampled_from(
        [f" {word}" for word in LINES[RELEASES[0]]["1"].split() if "=" in word and "{" not in word]
    ),
    st.text(max_size=20),
)
TEXTS = st.lists(PIECES, max_size=4).map("".join)
WRITTEN = st.fixed_dictionaries({}, optional=dict.fromkeys(("JobName", *FREE_TEXT), TEXTS))


@examples(150)
@given(st.sampled_from(RELEASES), st.dictionaries(st.sampled_from(IDS), WRITTEN, max_size=3))
def test_no_text_of_a_user_changes_what_is_read_of_any_job(
    release: str, written: dict[str, dict[str, str]]
) -> None:
    """The names of other jobs may be imitated too."""
    harmless = dict.fromkeys(("JobName", *FREE_TEXT), "(null)")
    names = {id: row.name for id, row in ROWS[release].items()}
    lines, rows = {}, []
    for id, line in LINES[release].items():
        texts = {**harmless, "JobName": names[id], **written.get(id, {})}
        lines[id] = line.format_map(texts)
        row = ROWS[release][id]
        rows.append(msgspec.structs.replace(row, name=texts["JobName"], account=texts["Account"]))
    text = "\n".join(lines.values())
    found = Questions(Answers(recorded(release), replaced={"job_details": text}, alone=lines)).job_details(
        rows
    )
    quiet = "\n".join(re.sub(r"\{\w+\}", "(null)", line) for line in LINES[release].values())
    unnamed = {id: msgspec.structs.replace(row, name="", account="") for id, row in ROWS[release].items()}
    assert found.found == JobRecords().read(quiet.encode(), unnamed).found
    assert found.found.keys() == set(IDS)


@pytest.mark.parametrize("release", RELEASES)
@given(job=st.sampled_from(IDS), written=WRITTEN, shown=WRITTEN)
def test_texts_without_blanks_are_read_in_one_step(
    release: str, job: str, written: dict[str, str], shown: dict[str, str]
) -> None:
    harmless = dict.fromkeys(("JobName", *FREE_TEXT), "(null)")
    text = LINES[release][job].format_map({**harmless, **written})
    texts = {**harmless, **written, **shown}
    row = msgspec.structs.replace(ROWS[release][job], name=texts["JobName"], account=texts["Account"])
    begin = text.index("JobName=") + len("JobName=")
    end = job_details._past(text, begin, row.name)
    found = job_details._soon_told(text, begin, row)
    assert found is None or (end is not None and found == job_details._state_of(text, end, row))
    if not written and not shown:
        assert found is not None


SEEN = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from(["", "MinMemoryCPU=7", "JobState=RUNNING", "Was=2", "\nx"])),
    max_size=14,
)
"""By record: the number of its job, and what is other than usual in it."""


NAMES = st.sampled_from(["", "a\nJobId=3 JobName=", "\nJobId=1 x\nJobId=2 JobName=", "\u00fc"])


@given(
    st.lists(st.tuples(SEEN, st.dictionaries(st.integers(1, 9), NAMES, max_size=3)), max_size=4),
    st.integers(1, 3000),
)
def test_a_later_look_reads_records_as_a_first_one(
    looks: list[tuple[list[tuple[int, str]], dict[int, str]]], block: int
) -> None:
    """Records change, come, go, and stand there twice; rows of squeue change; blocks end anywhere."""
    kind = next(id for id, line in LINES["26.05"].items() if "JobState=PENDING" in line and id.isdigit())
    row, usual = ROWS["26.05"][kind], re.sub(r"\{(?!JobName)\w+\}", "(null)", LINES["26.05"][kind])
    rows = {str(n): msgspec.structs.replace(row, id=str(n), name="", account="") for n in range(1, 10)}
    again = JobRecords()
    for records, renamed in looks:
        rows |= {str(n): msgspec.structs.replace(rows[str(n)], name=name) for n, name in renamed.items()}
        text = ""
        for number, other in records:
            name, _, value = other.partition("=")
            line = usual.replace(f"JobId={kind} ", f"JobId={number} ", 1)
            line = re.sub(rf" {name}=\S*", f" {name}={value}", line) if value else line + other
            text += line.replace("{JobName}", rows[str(number)].name or "(null)") + "\n"
        with mock.patch.object(remembered, "_BLOCK", block):
            found = again.read(text.encode(), rows)
        assert found == JobRecords().read(text.encode(), rows)


@given(TEXTS, TEXTS, TEXTS)
def test_no_text_of_a_user_is_a_row_of_squeue(name: str, account: str, wckey: str) -> None:
    mark = "adaptor-0123456789abcdef"
    rows = recorded(RELEASES[0])("queue").replace(MARK, mark)
    lie = rows.splitlines()[0].replace(mark, MARK)
    values = {"JobArrayID": "7", "State": "PENDING", "Partition": "batch", "NumCPUs": "1", "NumNodes": "1"}
    values |= {
        "TimeLimit": "5:00",
        "NodeList": "",
        "SchedNodes": "(null)",
        "PriorityLong": "1",
        "Reason": "None",
    }
    values |= {"tres-per-node": "gres:gpu:1", "Name": f"{name}{lie}", "Account": account, "WCKey": wckey}
    found = parse.parse_queue(f"{squeue_line(values, mark)}{rows}".encode(), mark)
    assert found[1:] == parse.parse_queue(rows.encode(), mark)
    assert (found[0].name, found[0].account, found[0].wckey) == (f"{name}{lie}", account, wckey)
    assert found[0].gpus_per_node == "gres:gpu:1"
