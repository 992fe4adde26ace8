"""What the backend makes of commands that refuse, hang, fail or print nonsense."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.model import Request
from adaptor.reports import OwnJob
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.commands import Commands
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.observed import backend as observed
from backends.observed.remembered import Remembered
from backends.slurm import parse
from backends.slurm.backend import SlurmBackend
from backends.slurm.questions import Questions, asking_environment
from backends.slurm.rows import QueueRow
from tests.backends.hung import HereWithHung
from tests.backends.orders import runnable
from tests.backends.slurm.answers import FIXTURES, MARK, RELEASES, Answers, recorded, squeue_line

Fake = Callable[[str, str], Path]


@pytest.fixture
def answering(fake: Fake, fake_squeue: Callable[[str], Path]) -> None:
    """Everything answers as recorded, but for what a test replaces."""
    fake_squeue(f"cat {FIXTURES}/plain/queue.txt")
    fake("sinfo", f"cat {FIXTURES}/plain/nodes.txt")
    fake(
        "scontrol",
        f"case $2 in reservation) cat {FIXTURES}/plain/reservations.txt;; "
        f"partition) cat {FIXTURES}/plain/partitions.txt;; config) cat {FIXTURES}/plain/settings.txt;; esac",
    )
    fake("sacctmgr", "echo 'You are not running a supported accounting_storage plugin' >&2; exit 1")
    fake("sbatch", "echo 77")


@pytest.fixture
def order(tmp_path: Path) -> PilotOrder:
    return runnable(tmp_path, "adaptor-x-1", "true", 4)


def backend(machine: Machine = HERE, **settings: object) -> SlurmBackend:
    return SlurmBackend(SiteConfig(backend="slurm", **settings), machine)  # type: ignore[arg-type]


@pytest.mark.usefixtures("answering")
def test_all_is_well(order: PilotOrder) -> None:
    site = backend()
    assert site.submit(order) == "77"
    script = order.directory / "pilot.sh"
    assert script.stat().st_mode & 0o777 == 0o600
    assert site.queue_state().processors == 16
    assert site.slot_margin == 72
    limits = site.advertised_limits()
    assert (limits.max_pending_requests, limits.max_proc, limits.max_tr) == (4, 16, 14400)


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize("script", ["sleep 60", "kill -9 $$", "echo thank you", "exit 1"])
def test_a_submit_that_leaves_it_open(fake: Fake, order: PilotOrder, script: str) -> None:
    fake("sbatch", script)
    with pytest.raises(SubmitUncertain):
        backend(HereWithHung("sbatch")).submit(order)


@pytest.mark.usefixtures("answering")
def test_a_submit_that_is_refused(fake: Fake, order: PilotOrder) -> None:
    fake("sbatch", "echo 'sbatch: error: Batch job submission failed: Invalid qos specification' >&2; exit 1")
    with pytest.raises(SubmitRefused, match="Invalid qos specification"):
        backend().submit(order)


@pytest.mark.usefixtures("answering")
def test_nothing_is_submitted_where_the_script_cannot_be_written(
    fake: Fake, order: PilotOrder, tmp_path: Path
) -> None:
    fake("sbatch", f"touch {tmp_path}/called; echo 77")
    (order.directory / "pilot.sh").mkdir()
    with pytest.raises(SchedulerError, match=r"pilot\.sh: cannot be written"):
        backend().submit(order)
    assert not (tmp_path / "called").exists()


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize("program", ["squeue", "sinfo", "scontrol"])
@pytest.mark.parametrize("script", ["sleep 60", "exit 1", "echo 'Segmentation | fault'"])
def test_no_queue_is_made_up(fake: Fake, program: str, script: str) -> None:
    fake(program, script)
    with pytest.raises(SchedulerError):
        backend(HereWithHung(program)).queue_state()


@pytest.mark.usefixtures("answering")
def test_an_unknown_partition_is_named_with_those_that_there_are() -> None:
    with pytest.raises(SchedulerError, match=r"no partition night .* batch, scavenger, short"):
        backend(partition="night").queue_state()


@pytest.mark.usefixtures("answering")
def test_a_partition_that_is_down_says_so(fake: Fake) -> None:
    fake("sinfo", f"sed 's/|up|/|inact|/' {FIXTURES}/plain/nodes.txt")
    with pytest.raises(SchedulerError, match="partition batch is inactive"):
        backend().queue_state()


@pytest.mark.usefixtures("answering")
def test_a_release_that_refuses_a_new_state_is_asked_without_it(
    fake_squeue: Callable[[str], Path], tmp_path: Path
) -> None:
    """Before 26.05; once, and not again."""
    refused = "[[ $* == *EXPEDITING* ]] && { echo 'squeue: error: Invalid job state specified' >&2; exit 1; }"
    fake_squeue(f'echo "$3" >> {tmp_path}/asked; {refused}; cat {FIXTURES}/plain/queue.txt')
    questions = backend()._shared.questions
    assert len(questions.queue()) == len(questions.queue()) == 14
    states = (tmp_path / "asked").read_text().split()
    assert [state.endswith(",EXPEDITING") for state in states] == [True, False, False]


def printf(*jobs: tuple[str, str, str]) -> str:
    """A line of squeue for each (number, name, comment)."""
    values = {"State": "RUNNING", "StartTime": "1795250000", "Partition": "batch", "NodeList": "n1"}
    values |= {"NumCPUs": "4", "NumNodes": "1", "TimeLimit": "30:00", "SchedNodes": "(null)"}
    values |= {"PriorityLong": "9", "Reason": "None"}
    lines = (
        squeue_line({**values, "JobArrayID": id, "Name": name, "WCKey": comment})
        for id, name, comment in jobs
    )
    return f"printf '{''.join(lines)}'".replace("\n", "\\n")


@pytest.fixture
def cancels(fake: Fake, tmp_path: Path) -> Callable[[], list[str]]:
    """The arguments of each call of scancel, without the user."""
    fake("scancel", f'shift; echo "$*" >> {tmp_path}/orders')
    orders = tmp_path / "orders"
    return lambda: orders.read_text().splitlines() if orders.exists() else []


def test_an_order_to_cancel_names_the_jobs_beside_their_numbers(
    fake_squeue: Callable[[str], Path], cancels: Callable[[], list[str]]
) -> None:
    renamed = '{"tool":"request-adaptor","kind":"request","tag":"adaptor-x.3"}'
    fake_squeue(printf(("1", "adaptor-x.1", "(null)"), ("2", "mine", "(null)"), ("3", "mine", renamed)))
    jobs = [OwnJob(str(number), f"adaptor-x.{number}") for number in (1, 2, 3, 4)]
    backend().cancel(jobs)
    # The third was renamed by its site; the fourth is not shown, and then its tag is its name.
    assert sorted(cancels()) == ["--name=adaptor-x.1 1", "--name=adaptor-x.4 4", "--name=mine 3"]


def test_without_squeue_the_tag_is_the_name(
    fake_squeue: Callable[[str], Path], cancels: Callable[[], list[str]]
) -> None:
    fake_squeue("exit 1")
    backend().cancel([OwnJob("1", "adaptor-x.1")])
    assert cancels() == ["--name=adaptor-x.1 1"]
    with pytest.raises(SchedulerError):
        backend().cancel([OwnJob("5_3", "adaptor-x.8")])


def test_elements_of_an_array_are_cancelled_without_its_name(
    fake: Fake, fake_squeue: Callable[[str], Path], tmp_path: Path
) -> None:
    """With any filter, scancel ends the whole of an array that waits."""
    fake("scancel", f'echo "$*" >> {tmp_path}/orders')
    name = "adaptor-x.5-8"
    shown = [(f"9_{index}", name, "(null)") for index in range(4)]
    fake_squeue(printf(*shown, ("7_0", "mine", "(null)")))
    jobs = [OwnJob("9_1", "adaptor-x.6"), OwnJob("9_2", "adaptor-x.7"), OwnJob("9_3", "adaptor-x.5")]
    backend().cancel([*jobs, OwnJob("7_0", "adaptor-x.9"), OwnJob("9_9", "adaptor-x.14")])
    assert (tmp_path / "orders").read_text().split() == ["9_[1-2]"]


def test_many_jobs_are_cancelled_in_few_orders_as_they_were_just_seen(
    fake_squeue: Callable[[str], Path], cancels: Callable[[], list[str]]
) -> None:
    shown = [(str(number), f"adaptor-x.{number}", "(null)") for number in range(450)]
    fake_squeue(printf(*shown, ("450", "mine", "(null)")))
    backend().cancel([OwnJob(str(number), f"adaptor-x.{number}") for number in range(460)])
    assert [len(order.split()) for order in cancels()] == [200, 200, 50]
    assert "450" not in " ".join(cancels()).split()


def test_cancelling_nothing_orders_nothing(
    fake_squeue: Callable[[str], Path], cancels: Callable[[], list[str]]
) -> None:
    fake_squeue("true")
    backend().cancel([])
    assert cancels() == []


@pytest.mark.usefixtures("answering")
def test_ended_and_unknown_jobs_need_no_cancel(fake: Fake) -> None:
    fake(
        "scancel",
        "echo 'scancel: error: Kill job error on job id 9: Invalid job id specified' >&2; "
        "echo 'scancel: error: Kill job error on job id 8: Job/step already completing or completed' >&2; "
        "exit 1",
    )
    backend().cancel([OwnJob("8", "adaptor-x.8"), OwnJob("9", "adaptor-x.9")])


@pytest.mark.parametrize(
    "script",
    [
        "echo 'scancel: error: Kill job error on job id 9: Access/permission denied' >&2; exit 1",
        "exit 1",
        "sleep 60",
    ],
)
def test_a_cancel_that_did_not_work_is_told(fake: Fake, script: str) -> None:
    fake("scancel", script)
    with pytest.raises(SchedulerError):
        backend(HereWithHung("scancel")).cancel([OwnJob("9", "adaptor-x.9")])


def test_a_job_that_does_not_run_has_nothing_to_release(fake_squeue: Callable[[str], Path]) -> None:
    fake_squeue(f"cat {FIXTURES}/plain/own_jobs.txt")
    with pytest.raises(SchedulerError, match="job 4 does not run"):
        backend().release(OwnJob("4", "next"), ["n1"])
    with pytest.raises(SchedulerError, match="job 1 can give back none of n1, n9"):
        backend().release(OwnJob("1", "wide"), ["n1", "n9"])
    with pytest.raises(SchedulerError, match="job 1 does not run"):
        backend().release(OwnJob("1", "adaptor-x.1"), ["n2"])


def test_what_is_left_after_a_release_is_named(
    fake: Fake, fake_squeue: Callable[[str], Path], tmp_path: Path
) -> None:
    fake_squeue(f"cat {FIXTURES}/plain/own_jobs.txt")
    fake("scontrol", f'echo "$*" > {tmp_path}/asked')
    site = backend()
    site.release(OwnJob("1", "wide"), ["n2"])
    user = site._shared.commands.user()
    assert (tmp_path / "asked").read_text().strip() == f"update JobName=wide UserID={user} NodeList=n1"


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    ("partition", "node", "minutes"), [("scavenger", "n3", 60), ("short", "n3", 10), ("short", "", 180)]
)
def test_a_pilot_on_a_donated_node_is_as_long_as_its_partition_allows(
    order: PilotOrder, fake: Fake, tmp_path: Path, partition: str, node: str, minutes: int
) -> None:
    fake("sbatch", f'echo "$*" > {tmp_path}/asked; echo 77')
    donating = backend(donation=DonationConfig(mode="preemptible", partition=partition))
    donating.submit(msgspec.structs.replace(order, request=Request(4, 3 * 3600), node=node))
    assert f"--time={minutes} " in (tmp_path / "asked").read_text()


@pytest.mark.usefixtures("answering")
def test_without_an_answer_nothing_is_said_of_nodes(fake: Fake) -> None:
    site = backend(donation=DonationConfig(mode="preemptible", partition="scavenger"))
    assert len(site.nodes([])) == 6
    for command in ("squeue", "sinfo"):
        fake(command, "echo Unable to contact slurm controller >&2; exit 1")
        with pytest.raises(SchedulerError):
            site.nodes([])


@pytest.mark.usefixtures("answering")
def test_one_look_serves_the_nodes_and_the_queue(
    order: PilotOrder, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "FRESH", math.inf)
    fake("sinfo", f"echo asked >> {tmp_path}/asked; cat {FIXTURES}/plain/nodes.txt")
    site = backend(donation=DonationConfig(mode="preemptible", partition="scavenger"))
    looks = []
    for ask in (lambda: site.nodes([]), site.queue_state, lambda: site.submit(order), site.queue_state):
        ask()
        looks.append((tmp_path / "asked").read_text().count("asked"))
    assert looks == [1, 1, 1, 2]


@pytest.mark.usefixtures("answering")
def test_a_reservation_of_which_donated_nodes_are_part_is_no_plan_of_others(
    fake: Fake, fake_squeue: Callable[[str], Path]
) -> None:
    fake_squeue("true")
    later = "sed 's/=17952/=47952/g'"  # the recorded one has been long ago
    fake("scontrol", f"[[ $2 != reservation ]] || {later} {FIXTURES}/plain/reservations.txt")
    donated = DonationConfig(mode="preemptible", partition="scavenger")
    own = msgspec.structs.replace(donated, extra_args=("--reservation=service",))
    planned = [
        [node.planned for node in backend(donation=each, extra_args=("--nice",)).nodes([])]
        for each in (donated, own)
    ]
    assert planned == [[4795261287.0] * 2 + [math.inf] * 4, [math.inf] * 6]


def test_the_records_of_local_jobs_are_asked_once_and_for_all_users(fake: Fake, tmp_path: Path) -> None:
    fake(
        "sacct",
        'for word; do case $word in --delimiter=*) mark=${word#--delimiter=};; esac; done; echo "$*" >'
        f"{tmp_path}/asked; "
        "for row in 'ann 60 90 a' 'me 60 30 adaptor-1.hpc.7'; do set -- $row; "
        'echo "$1$mark$2$mark$3$mark$4"; done',
    )
    (only,) = backend(partition="batch").ended_jobs()
    assert (only.owner, only.limit, only.ran) == ("ann", 3600.0, 90.0), "and nothing of pilots"
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("-a -X -n -P ")
    assert asked.strip().endswith("-r batch")


@pytest.mark.parametrize("script", ["exit 1", "sleep 60"])
def test_records_that_are_not_to_be_had_are_an_error_of_the_scheduler(fake: Fake, script: str) -> None:
    fake("sacct", script)
    with pytest.raises(SchedulerError):
        backend(HereWithHung("sacct")).ended_jobs()


Changes = st.lists(st.sampled_from(["PENDING", "physics", "n1", "n2", "1", "batch", "30:00"]), max_size=4)


def changed(text: str, words: list[str], seed: int) -> str:
    """Other values in some lines, in another order of lines."""
    draw = random.Random(seed)
    lines = text.splitlines(keepends=True)
    for word in words:
        place = draw.randrange(len(lines))
        lines[place] = lines[place].replace(word, f"{word}0", 1)
    return "".join(lines)


@pytest.mark.parametrize("release", RELEASES)
@given(words=Changes, seed=st.integers(0, 99))
def test_a_second_look_reads_what_a_first_one_would(release: str, words: list[str], seed: int) -> None:
    text_of = recorded(release)
    texts = {question: changed(text_of(question), words, seed) for question in ("nodes", "job_details")}
    again, anew = Questions(Answers(text_of)), Questions(Answers(text_of, replaced=texts))
    again.nodes()
    again.job_details(again.queue())
    again._commands = anew._commands
    assert [row.node for row in again.nodes()] == [row.node for row in anew.nodes()]
    rows = again.queue()
    assert rows == anew.queue()
    assert again.job_details(rows) == anew.job_details(rows)


def test_a_row_that_stays_is_made_once(answered: Callable[[str], str]) -> None:
    known, text = Remembered[QueueRow](), answered("queue")
    before = {row.id: row for row in parse.parse_queue(text.encode(), MARK, known)}
    changed = text.replace("PENDING", "RUNNING", 1)
    after = parse.parse_queue(changed.replace(MARK, "<other>").encode(), "<other>", known)
    assert sum(before[row.id] is not row for row in after) == 1
    assert after == parse.parse_queue(changed.encode(), MARK)


def test_a_name_that_begins_with_a_line_break_ends_no_row(answered: Callable[[str], str]) -> None:
    text = answered("queue")
    rows = parse.parse_queue(text.encode(), MARK)
    name = next(row.name for row in rows if row.name)
    broken = parse.parse_queue(text.replace(f"|{name}{MARK}", f"|\n{name}{MARK}", 1).encode(), MARK)
    assert [row.id for row in broken] == [row.id for row in rows]
    assert f"\n{name}" in {row.name for row in broken}


@pytest.mark.parametrize(
    ("behind", "answers"),
    [
        ("Slurmctld(primary) at head is DOWN", True),  # with `rl_enable`, the ping alone is held back
        ("", False),
    ],
)
def test_settings_that_came_whole_count_whatever_scontrol_says_of_its_ping(
    fake: Fake, behind: str, answers: bool
) -> None:
    fake("scontrol", f"cat {FIXTURES}/plain/settings.txt; echo '{behind}'; exit 1")
    asked = Questions(Commands(asking_environment, 10.0))
    if answers:
        assert asked.settings()["SLURM_VERSION"] == "22.05.8"
    else:
        with pytest.raises(SchedulerError, match="scontrol failed with status 1"):
            asked.settings()
