"""What the backend makes of OpenPBS's recorded answers, and of commands that refuse, hang or fail."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.model import Request
from adaptor.reports import JobState, OwnJob
from adaptor.resources import TaskSize
from backends.base import ChangeRefused, PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.machines.base import CommandAnswer, Machine
from backends.machines.here import HERE
from backends.observed.state import HIDDEN
from backends.pbs.backend import PbsBackend
from backends.pbs.margins import SLOT_MARGIN
from backends.pbs.openpbs.submitting import accepted_id
from tests.backends.answering import answer_of
from tests.backends.hung import HereWithHung
from tests.backends.orders import runnable
from tests.backends.pbs.openpbs_recordings import FIXTURES, answers, dsv_line, flat, recorded_jobs

Fake = Callable[[str, str], Path]
ANSWERS = answers()
QSTAT = f"""
case "$*" in
    --version) echo 'pbs_version = 23.06.06';;
    "-B -f") cat {FIXTURES}/02-busy-qstat-Bf.txt;;
    "-Q -f") cat {FIXTURES}/02-busy-qstat-Qf.txt;;
    "-f -F dsv") cat {FIXTURES}/02-busy-qstat-f-dsv.txt;;
    *) cat elements.txt 2>/dev/null; exit 153;;
esac
"""


@pytest.fixture
def answering(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything answers as the recorded busy cluster, but for what a test replaces."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "alice")
    fake("qstat", QSTAT)
    fake("pbsnodes", f"cat {FIXTURES}/02-busy-pbsnodes-av.txt")
    fake("qmgr", "exit 1")
    fake("qsub", "printf '%s\\n' \"$@\" >qsub.arguments; echo 77.pbshead")
    fake("qselect", "echo 77.pbshead")


@pytest.fixture
def order(tmp_path: Path) -> PilotOrder:
    return runnable(tmp_path, "adaptor-x.hpc.1", "true", 4, task=TaskSize(processors=2, memory=3 * 2**20))


def backend(machine: Machine = HERE, **settings: object) -> PbsBackend:
    return PbsBackend(SiteConfig(backend="pbs", **settings), machine)  # type: ignore[arg-type]


def failing(answer: CommandAnswer) -> str:
    """A script that answers so."""
    said = (shlex.quote(text) for text in (answer.output, answer.errors))
    return "printf %s {}; printf %s {} >&2; exit {}".format(*said, answer.status)


def of_ours(id: str, recording: str, tag: str = "adaptor-x.hpc.1") -> str:
    """A recorded job as one of ours, the way qstat prints it."""
    (attributes,) = recorded_jobs()[recording].values()
    return dsv_line(id, flat({**attributes, "Variable_List": {"PBS_O_HOST": "pbshead", "ADAPTOR_TAG": tag}}))


def running(*ids: str) -> list[OwnJob]:
    """Jobs of ours that qstat prints from now on."""
    lines = [of_ours(id, "02-job-running-scatter") for id in ids]
    Path("elements.txt").write_text("\n".join(lines) + "\n")
    return [OwnJob(id, "adaptor-x.hpc.1") for id in ids]


@pytest.mark.usefixtures("answering")
def test_all_is_well(order: PilotOrder) -> None:
    site = backend()
    assert site.submit(order) == "77.pbshead"
    script = order.directory / "pilot.sh"
    assert script.stat().st_mode & 0o777 == 0o600
    assert site.queue_state().processors == 16
    assert (site.time_resolution, site.slot_margin) == (1, SLOT_MARGIN)
    limits = site.advertised_limits()
    assert (limits.max_pending_requests, limits.max_proc, limits.max_tr) == (4, 16, 86_400)


@pytest.mark.usefixtures("answering")
def test_what_qsub_is_told(order: PilotOrder, tmp_path: Path) -> None:
    backend(partition="workq", account="acct", extra_args=("-P", "proj")).submit(order)
    assert (tmp_path / "qsub.arguments").read_text().splitlines() == [
        *("-f", "-N", "adaptor-x.hpc.1", "-v", "ADAPTOR_TAG=adaptor-x.hpc.1"),
        *("-q", "workq", "-A", "acct"),
        *("-l", "select=2:ncpus=2:mpiprocs=2:mem=3072kb", "-l", "place=free", "-l", "walltime=600"),
        *("-r", "n", "-m", "n", "-j", "oe", "-o", f"{order.directory}/pbs.out", "-W", "umask=077"),
        *("-P", "proj", "--", "/bin/bash", "-l", f"{order.directory}/pilot.sh"),
    ]


@pytest.mark.usefixtures("answering")
def test_whole_nodes_and_shrinking_to_fit(order: PilotOrder, tmp_path: Path) -> None:
    backend(whole_nodes=True).submit(
        msgspec.structs.replace(order, request=Request(8, 601, 300), task=TaskSize(processors=2))
    )
    told = (tmp_path / "qsub.arguments").read_text().splitlines()
    resources = [word for option, word in itertools.pairwise(told) if option == "-l"]
    assert resources[:-1] == [
        "select=2:ncpus=4:mpiprocs=4",  # the usual machine has 4, that of two vnodes too
        "place=scatter:excl",
        "min_walltime=300",
        "max_walltime=601",
        "walltime=601",
    ]


@pytest.mark.usefixtures("answering")
def test_a_pilot_on_a_donated_node_is_as_long_as_its_queue_allows(order: PilotOrder, tmp_path: Path) -> None:
    donating = backend(donation=DonationConfig(mode="preemptible", partition="express"))
    pilot = msgspec.structs.replace(order, request=Request(4, 7200), node="node04")
    donating.submit(pilot)
    told = (tmp_path / "qsub.arguments").read_text().splitlines()
    resources = [word for option, word in itertools.pairwise(told) if option in ("-l", "-q")]
    assert resources[:-1] == [
        "express",
        "select=1:ncpus=4:mpiprocs=4:host=node04",
        "place=exclhost",
        "walltime=1800",
    ]


SCHED = "Sched default\\n    preempt_queue_prio = 150\\n    preempt_order = "


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    ("order_", "rerunnable"), [("D", "n"), ("SCR", "n"), ("R", "y"), ("CR", "y"), ("R 50 D", "n"), ("", "n")]
)
def test_a_pilot_may_be_put_back_where_the_scheduler_has_no_other_way(
    order: PilotOrder, fake: Fake, tmp_path: Path, order_: str, rerunnable: str
) -> None:
    fake("qmgr", f"printf '{SCHED}{order_}\\n'" if order_ else "exit 1")
    site = backend(donation=DonationConfig(mode="preemptible"))
    site.submit(msgspec.structs.replace(order, node="node04"))
    told = (tmp_path / "qsub.arguments").read_text().splitlines()
    assert told[told.index("-r") + 1] == rerunnable


@pytest.mark.usefixtures("answering")
def test_a_pilot_that_could_not_yield_is_refused(order: PilotOrder, fake: Fake, tmp_path: Path) -> None:
    fake("qmgr", f"printf '{SCHED}C\\n'")
    with pytest.raises(SubmitRefused, match="preempt_order is C, and pilots cannot be checkpointed"):
        backend(donation=DonationConfig(mode="preemptible")).submit(
            msgspec.structs.replace(order, node="node04")
        )
    assert not (tmp_path / "qsub.arguments").exists()


@pytest.mark.usefixtures("answering")
def test_a_pilot_that_was_put_back_is_deleted_and_counts_as_preempted(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "elements.txt").write_text(of_ours("77.pbshead", "05-R-preempted") + "\n")
    fake("qdel", 'echo "$@" >deleted')
    (found,) = backend().jobs([], "adaptor-x.hpc.")
    assert (found.id, found.state) == ("77.pbshead", JobState.PREEMPTED)
    assert (tmp_path / "deleted").read_text() == "77.pbshead\n"
    fake("qdel", "exit 255")
    with pytest.raises(SchedulerError, match="qdel failed"):  # asked again, or it would start anew
        backend().jobs([], "adaptor-x.hpc.")


@pytest.mark.usefixtures("answering")
def test_a_pilot_on_a_donated_node_that_no_queue_takes_is_refused(order: PilotOrder, tmp_path: Path) -> None:
    pilot = msgspec.structs.replace(order, request=Request(12, 600), node="node04")
    with pytest.raises(SubmitRefused, match="queue limited takes no 12 processors"):
        backend(donation=DonationConfig(mode="preemptible", partition="limited")).submit(pilot)
    with pytest.raises(SchedulerError, match="PBS has no queue night"):
        backend(donation=DonationConfig(mode="preemptible", partition="night")).submit(pilot)
    assert not (tmp_path / "qsub.arguments").exists()


@pytest.mark.usefixtures("answering")
def test_a_name_too_long_for_pbs_is_cut_and_the_tag_is_kept(order: PilotOrder, tmp_path: Path) -> None:
    tag = "adaptor-" + "x" * 300
    backend().submit(msgspec.structs.replace(order, tag=tag))
    told = (tmp_path / "qsub.arguments").read_text().splitlines()
    assert told[2] == tag[:230]
    assert told[4] == f"ADAPTOR_TAG={tag}"


@pytest.mark.usefixtures("answering")
def test_limits_of_a_queue_and_of_a_routing_one() -> None:
    narrow = backend(partition="limited").advertised_limits()
    assert (narrow.max_pending_requests, narrow.max_proc, narrow.max_tr) == (1, 8, 3600)
    # Behind it are express (30 min) and workq (24 h).
    assert backend(partition="route").advertised_limits().max_tr == 86_400


@pytest.mark.usefixtures("answering")
def test_a_request_that_a_routing_queue_would_drop_is_refused(order: PilotOrder, tmp_path: Path) -> None:
    for request in (Request(4, 48 * 3600), Request(17, 60)):
        with pytest.raises(SubmitRefused):
            backend(partition="route").submit(msgspec.structs.replace(order, request=request))
    assert not (tmp_path / "qsub.arguments").exists()


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    ("p", "cpus", "memory", "words"),
    [
        (16, 1, 2 * 2**30, "16 × 1 processor and 2G of memory were asked for, .* hold 8: lower"),
        (15, 3, None, "5 × 3 processors were asked for, each on one node, .* hold 4"),
        (6, 6, None, "no node of queue workq has 6 processors: its nodes have 4 processors and 4G"),
    ],
)
def test_a_request_that_fits_on_no_nodes_is_refused_before_pbs_sees_it(
    order: PilotOrder, tmp_path: Path, p: int, cpus: int, memory: int | None, words: str
) -> None:
    wanted = msgspec.structs.replace(
        order, request=Request(p, 600), task=TaskSize(processors=cpus, memory=memory)
    )
    with pytest.raises(SubmitRefused, match=words):
        backend().submit(wanted)
    assert not (tmp_path / "qsub.arguments").exists()


@pytest.mark.parametrize("name", [n for n, a in ANSWERS.items() if n.startswith("07-qsub-") and a.status])
def test_every_recorded_refusal_is_one(name: str) -> None:
    with pytest.raises(SubmitRefused, match="PBS refused the request"):
        accepted_id(ANSWERS[name])


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("07-qsub-success", "83.pbshead"),
        ("07-qsub-success-array", "84[].pbshead"),
        ("07-qsub-hook-pass", "79.pbshead"),
        ("07-qsub-bad-depend", "71.pbshead"),
        ("07-qsub-route-ok", "77.pbshead"),
        ("07-qsub-route-refused", "78.pbshead"),
    ],
)
def test_recorded_ids(name: str, id: str) -> None:
    assert accepted_id(ANSWERS[name]) == id


def test_greetings_around_an_id() -> None:
    assert accepted_id(answer_of(0, "Welcome!\n12.server-1.example.org\n\n", "")) == "12.server-1.example.org"
    with pytest.raises(SubmitUncertain):
        accepted_id(ANSWERS["07-qsub-success-z"])


@pytest.mark.parametrize("name", ["13-down-qsub", "13-wrong-host-qsub"])
def test_a_server_that_is_not_reached_has_certainly_not_the_request(name: str) -> None:
    with pytest.raises(SchedulerError) as caught:
        accepted_id(ANSWERS[name])
    assert not isinstance(caught.value, (SubmitRefused, SubmitUncertain))


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    "script",
    [
        "sleep 60",
        "kill -9 $$",
        "echo thank you",
        "exit 1",
        "echo 'qsub: Batch protocol error' >&2; exit 183",
        "echo 'qsub: System error' >&2; exit 162",
    ],
)
def test_a_submit_that_leaves_it_open(fake: Fake, order: PilotOrder, script: str) -> None:
    fake("qsub", script)
    with pytest.raises(SubmitUncertain):
        backend(HereWithHung("qsub")).submit(order)


@pytest.mark.usefixtures("answering")
def test_a_folder_that_cannot_be_written_to(order: PilotOrder, tmp_path: Path) -> None:
    gone = msgspec.structs.replace(order, directory=tmp_path / "not-there")
    with pytest.raises(SchedulerError, match=r"not-there/pilot.sh: cannot be written"):
        backend().submit(gone)
    assert not (tmp_path / "qsub.arguments").exists()


@pytest.mark.usefixtures("answering")
def test_the_running_jobs_of_arrays_are_asked_for_by_the_ids_that_nodes_show(
    tmp_path: Path, fake: Fake
) -> None:
    attributes = recorded_jobs()["02-job-array-subjobs"]
    lines = [dsv_line(id, flat(job)) for id, job in attributes.items() if job["job_state"] == "R"]
    (tmp_path / "elements.txt").write_text("\n".join(lines) + "\n")
    fake("qstat", QSTAT.replace("*) cat", '*) echo "$@" >asked; cat'))
    running = {each.id: each.processors for each in backend().queue_state().running}
    assert (tmp_path / "asked").read_text().split() == [
        *("-f", "-F", "dsv"),
        *("3[0].pbshead", "3[1].pbshead", "3[2].pbshead", "3[3].pbshead", "4[1].pbshead", "4[3].pbshead"),
    ]
    assert running["3[2].pbshead"] == 1
    assert running[HIDDEN] == 2  # array 4 has ended meanwhile


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    ("command", "answer"),
    [
        *((command, "13-down-qstat") for command in ("qstat", "pbsnodes")),
        ("qstat", "13-no-conf-qstat"),
        ("pbsnodes", "13-down-pbsnodes-a-json"),
    ],
)
def test_a_server_that_is_down_is_an_error_and_not_an_empty_queue(
    fake: Fake, command: str, answer: str
) -> None:
    site = backend()
    site.queue_state()
    found = ANSWERS[answer]
    fake(command, failing(found))
    with pytest.raises(SchedulerError, match="connect"):
        site.queue_state()


@pytest.mark.usefixtures("answering")
def test_a_server_that_hangs_is_given_up(fake: Fake) -> None:
    machine = HereWithHung()
    site = backend(machine)
    site.queue_state()
    fake("qstat", "sleep 60")
    fake("qselect", "sleep 60")
    machine.programs = ("qstat", "qselect")
    with pytest.raises(SchedulerError, match=r"qstat did not answer within"):
        site.queue_state()
    with pytest.raises(SchedulerError, match=r"qselect did not answer within"):
        site.jobs(["77.pbshead"], "adaptor-")


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    ("settings", "edit", "words"),
    [
        ({"partition": "night"}, "", "no queue night; there are: closed, express"),
        ({"partition": "closed"}, "", "queue closed is stopped"),
        ({}, "s/scheduling = True/scheduling = False/", "server pbshead does not schedule"),
        ({}, "/default_queue/d", "set `partition`"),
        ({}, "s/^Server.*/hello/", "the adaptor cannot read"),
    ],
)
def test_a_site_where_no_job_starts(fake: Fake, settings: dict[str, str], edit: str, words: str) -> None:
    fake("qstat", QSTAT.replace("Bf.txt;;", f"Bf.txt | sed '{edit}';;"))
    with pytest.raises(SchedulerError, match=words):
        backend(**settings).queue_state()


@pytest.mark.parametrize(
    "name",
    ["07-qdel-unknown", "07-qdel-unknown-array", "07-qdel-finished", "07-qdel-mixed", "03-qdel-running"],
)
@pytest.mark.usefixtures("answering")
def test_cancelling_what_is_over_is_no_error(fake: Fake, name: str) -> None:
    found = ANSWERS[name]
    fake("qdel", failing(found))
    backend().cancel(running("999999.pbshead", "21.pbshead"))


@pytest.mark.parametrize(
    "name", ["03-qdel-others-job", "06-qdel-on-dead-node", "07-qdel-garbage", "13-down-qdel"]
)
@pytest.mark.usefixtures("answering")
def test_cancelling_what_cannot_be_cancelled_is_one(fake: Fake, name: str) -> None:
    found = ANSWERS[name]
    fake("qdel", failing(found))
    with pytest.raises(SchedulerError, match=f"qdel failed with status {found.status}"):
        backend().cancel(running("6.pbshead"))


@pytest.mark.usefixtures("answering")
def test_many_jobs_are_cancelled_in_few_commands(fake: Fake, tmp_path: Path) -> None:
    fake("qdel", "echo $# >>qdel.counts")
    jobs = running(*(f"{n}.pbshead" for n in range(500)))
    fake(
        "qstat",
        QSTAT.replace("*) cat elements.txt", '*) shift; for id; do grep "^Job Id: $id" elements.txt; done'),
    )
    backend().cancel(jobs)
    assert (tmp_path / "qdel.counts").read_text().split() == ["200", "200", "100"]
    backend().cancel([])
    assert len((tmp_path / "qdel.counts").read_text().split()) == 3


@pytest.mark.usefixtures("answering")
def test_our_jobs_are_found_by_id_and_by_tag_in_one_question_each(fake: Fake, tmp_path: Path) -> None:
    lines = [of_ours("77.pbshead", "02-job-queued-top"), of_ours("5.pbshead", "04-job-walltime", "other-1")]
    (tmp_path / "elements.txt").write_text("\n".join(lines) + "\n")
    fake("qstat", QSTAT.replace("*) cat", '*) echo "$@" >>asked; cat'))
    by_tag = backend().jobs([], "adaptor-x.hpc.")
    assert [(job.id, job.tag, job.state) for job in by_tag] == [
        ("77.pbshead", "adaptor-x.hpc.1", JobState.QUEUED)
    ]
    by_id = backend().jobs(["5.pbshead", "gone.pbshead"], "no such tag")
    assert [(job.id, job.state) for job in by_id] == [("5.pbshead", JobState.WALLTIME)]
    assert (tmp_path / "asked").read_text().splitlines() == [
        "-x -f -F dsv 77.pbshead",
        "-x -f -F dsv 5.pbshead 77.pbshead gone.pbshead",
    ]


@pytest.mark.usefixtures("answering")
def test_only_our_own_users_jobs_are_asked_for_and_ended_ones_since_the_last_time(
    fake: Fake, tmp_path: Path
) -> None:
    fake("qselect", 'echo "$TZ $*" >>asked')
    site = backend()
    site.jobs([], "adaptor-")
    site.jobs([], "adaptor-")
    first, ended, again, ended_later = (tmp_path / "asked").read_text().splitlines()
    assert first == again == "UTC -u alice"
    assert ended.startswith("UTC -x -u alice -s F -tm.gt.20")
    assert ended_later.split(".gt.")[1] > ended.split(".gt.")[1]


@pytest.mark.usefixtures("answering")
def test_jobs_of_ours_that_are_no_pilots_are_asked_about_once(fake: Fake, tmp_path: Path) -> None:
    plain = dsv_line("77.pbshead", flat(recorded_jobs()["02-job-held"]["10.pbshead"]))
    (tmp_path / "elements.txt").write_text(plain + "\n")
    fake("qstat", QSTAT.replace("*) cat", '*) echo "$@" >>asked; cat'))
    site = backend()
    assert [site.jobs([], "adaptor-"), site.jobs([], "adaptor-")] == [[], []]
    assert (tmp_path / "asked").read_text().splitlines() == ["-x -f -F dsv 77.pbshead"]
    assert [job.tag for job in site.jobs(["77.pbshead"], "adaptor-")] == ["held-user"]


@pytest.mark.usefixtures("answering")
def test_where_no_history_is_kept_ended_jobs_are_simply_missing(fake: Fake, tmp_path: Path) -> None:
    words = ANSWERS["11-qstat-x"].errors.strip()
    fake("qselect", f'[[ $1 == -x ]] && {{ echo "qselect: {words}" >&2; exit 36; }}; echo 77.pbshead')
    (tmp_path / "elements.txt").write_text(of_ours("77.pbshead", "02-job-running-scatter") + "\n")
    fake("qstat", QSTAT.replace("*) cat", f"-x*) echo '{words}' >&2;; *) cat"))
    site = backend()
    for _ in range(2):
        (found,) = site.jobs(["21.pbshead"], "adaptor-")
        assert (found.id, found.state) == ("77.pbshead", JobState.RUNNING)


@pytest.mark.usefixtures("answering")
def test_the_history_of_the_server_tells_how_long_jobs_ran(fake: Fake, tmp_path: Path) -> None:
    row = "Job Id: {}|Job_Name={}|Job_Owner=ann@h|job_state=F|Resource_List.walltime=01:00:00{}\n"
    used = "|resources_used.walltime=00:15:00"
    text = (
        row.format("1.h", "sim", used)
        + row.format("2.h", "adaptor-x.hpc.1", used)
        + row.format("3.h", "x", "")
    )
    (tmp_path / "elements.txt").write_text(text)
    fake("qselect", "echo 1.h; echo 2.h; echo 3.h")
    (only,) = backend().ended_jobs()
    assert (only.owner, only.limit, only.ran) == ("ann", 3600.0, 900.0)
    fake("qselect", "exit 36")
    assert backend().ended_jobs() == [], "no history is kept"


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize("script", ["exit 255", "echo nonsense", "echo 'Job Id: 77.pbshead|stime=soon'"])
def test_answers_on_our_jobs_that_say_nothing(fake: Fake, script: str) -> None:
    fake("qstat", QSTAT.replace("*) cat", f"*) {script}; cat"))
    with pytest.raises(SchedulerError):
        backend().jobs(["77.pbshead"], "adaptor-")


WRAPPER = (
    "Usage:\n    qstat [-f] [-a|-i|-r] [-n [-1]] [-G|-M] [-u user_list] [-? | --help]\n         [--man]\n"
)
"""What Debian's wrapper of qstat, in front of Slurm, says of `--version`."""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (answer_of(2, "", WRAPPER), "set `backend: slurm`"),
        (ANSWERS["00-slurmwrapper-qstat-version"], "answers .*fetch_config"),
        (answer_of(0, "qstat of my own\n", ""), "neither OpenPBS nor PBS Professional answers"),
        (
            answer_of(0, "", "Version: 6.1.2\n"),
            "neither OpenPBS nor PBS Professional answers .*6.1.2",
        ),
    ],
)
def test_what_is_no_pbs_is_not_taken_for_one(fake: Fake, answer: CommandAnswer, words: str) -> None:
    fake("qstat", failing(answer))
    with pytest.raises(SchedulerError, match=words):
        backend().jobs([], "adaptor-")


@pytest.mark.usefixtures("answering")
def test_a_queued_request_is_changed_by_qalter(fake: Fake, order: PilotOrder) -> None:
    site = backend()
    fake("qalter", "printf '%s\\n' \"$@\" >qalter.arguments")
    running("77.pbshead")
    site.reshape("77.pbshead", order)

    def words(least: int, most: int) -> tuple[str, ...]:
        return "-l", f"min_walltime={least}", "-l", f"max_walltime={most}", "-l", f"walltime={most}"

    select = "select=2:ncpus=2:mpiprocs=2:mem=3072kb"
    asked = Path("qalter.arguments").read_text().split()
    assert asked == ["-l", select, *words(600, 600), "77.pbshead"]
    site.reshape("77.pbshead", msgspec.structs.replace(order, request=Request(4, 600, 120)))
    asked = Path("qalter.arguments").read_text().split()
    assert asked == ["-l", select, *words(120, 600), "77.pbshead"]
    assert (site.can_reshape, site.can_release) == (True, True)


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            "echo 'qalter: Cannot modify attribute while job running  Resource_List' >&2; exit 167",
            True,
        ),
        ("echo 'qalter: Job violates queue and/or server resource limits 77.pbshead' >&2; exit 188", True),
        ("echo 'cannot connect to server pbshead (errno=111)' >&2; exit 111", False),
        ("echo 'qalter: End of File 77.pbshead' >&2; exit 208", False),
        ("kill -9 $$", False),
    ],
)
def test_whether_a_change_was_refused(fake: Fake, order: PilotOrder, answer: str, error: bool) -> None:
    fake("qalter", answer)
    running("77.pbshead")
    with pytest.raises(SchedulerError) as raised:
        backend().reshape("77.pbshead", order)
    assert isinstance(raised.value, ChangeRefused) == error


@pytest.mark.usefixtures("answering")
def test_a_change_that_no_queue_holds_is_not_asked(order: PilotOrder) -> None:
    running("77.pbshead")
    with pytest.raises(ChangeRefused, match=r"lower `limits\.max_proc`"):
        backend().reshape("77.pbshead", msgspec.structs.replace(order, request=Request(10_000, 60)))


@pytest.mark.usefixtures("answering")
def test_nodes_are_given_back_with_all_their_vnodes(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "elements.txt").write_text(of_ours("77.pbshead", "02-job-running-scatter") + "\n")
    fake("pbs_release_nodes", "printf '%s\\n' \"$@\" >released")
    site = backend()
    (job,) = site.jobs(["77.pbshead"], "none")
    site.release(job.own, [f"{job.nodes[1]}.cluster"])
    assert Path("released").read_text().split() == ["-j", "77.pbshead", job.nodes[1]]
    with pytest.raises(SchedulerError, match="can give back none of n99"):
        site.release(job.own, ["n99"])
    with pytest.raises(SchedulerError, match="can give back none"):
        site.release(OwnJob(job.id, "another"), [f"{job.nodes[1]}.cluster"])


@pytest.mark.usefixtures("answering")
def test_a_job_with_another_tag_is_not_touched(fake: Fake, order: PilotOrder, tmp_path: Path) -> None:
    for program in ("qdel", "qalter"):
        fake(program, f"touch {tmp_path}/touched")
    (job,) = running("77.pbshead")
    site = backend()
    site.cancel([OwnJob(job.id, "adaptor-x.hpc.2"), OwnJob("78.pbshead", job.tag)])
    with pytest.raises(ChangeRefused, match=r"no job 77\.pbshead with the tag adaptor-x\.hpc\.2"):
        site.reshape(job.id, msgspec.structs.replace(order, tag="adaptor-x.hpc.2"))
    assert not (tmp_path / "touched").exists()


@pytest.mark.usefixtures("answering")
def test_what_the_server_does_not_know_is_gone_and_what_it_leaves_out_is_not(fake: Fake) -> None:
    fake("qstat", QSTAT.replace("exit 153", "echo 'qstat: Unknown Job Id 77.pbshead' >&2; exit 153"))
    (found,) = backend().jobs(["77.pbshead", "78.pbshead"], "adaptor-")
    assert (found.id, found.tag, found.state) == ("77.pbshead", "", JobState.GONE)


@pytest.mark.usefixtures("answering")
def test_what_a_site_prints_before_an_answer_is_no_job(fake: Fake, tmp_path: Path) -> None:
    (job,) = running("77.pbshead")
    asked = "echo \"$*\" >>asked; echo 'Your password expires in 33 days'; echo; cat elements.txt"
    fake("qselect", "echo 'Your password expires in 33 days'; echo 77.pbshead")
    fake("qstat", QSTAT.replace("*) cat elements.txt 2>/dev/null", f"*) {asked}"))
    fake("qsub", "echo 'Your password expires in 33 days'; echo 33; echo 78.pbshead")
    site = backend()
    assert [report.own for report in site.jobs([], "adaptor-")] == [job]
    assert Path("asked").read_text().split()[-1] == "77.pbshead"
    assert site.submit(runnable(tmp_path, "adaptor-x.hpc.9", "true")) == "78.pbshead"
