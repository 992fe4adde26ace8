"""Torque as a dialect: its commands are played by small programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adaptor.config.schema import SiteConfig
from adaptor.reports import JobState
from adaptor.resources import Need, Part
from adaptor_torque.dialect import Torque
from backends.base import SchedulerError
from backends.commands import CommandAnswer, Commands
from backends.pbs.backend import PbsBackend
from backends.pbs.reading import choose, is_torque
from tests.backends.answering import answer_of

Fake = Callable[[str, str], Path]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "torque"
USAGE = (FIXTURES / "slurm-wrappers" / "version.txt").read_text()


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("LOGNAME", "ada")
    return Commands(lambda own: own, 30)


@pytest.fixture
def asked(fake: Fake, tmp_path: Path) -> Callable[[], list[str]]:
    """qstat prints the recorded answers; returns the arguments of the job questions since the last call."""
    log = tmp_path / "asked"
    fake("qselect", "[[ $* == '-u ada' ]] || exit 9\nprintf '101.head.example.org\\n106.head.example.org\\n'")
    fake(
        "qstat",
        f"""
        folder={FIXTURES}/torque-6
        case "$*" in
            --version) printf 'Version: 6.1.2\\nCommit: 661e092552de43a785c15d39a3634a541d86898e\\n' >&2 ;;
            '-Q -f -1') cat $folder/queues.txt ;;
            '-B -f -1') cat $folder/server.txt ;;
            '-f -1 -t') cat $folder/jobs.txt ;;
            '-f -1 '*) echo "${{*:3}}" >>{log}
                sed '/^Job Id: 102/,/^Job Id: 105/{{/^Job Id: 105/!d}}' $folder/jobs.txt
                if [[ $* == *99.head* ]]; then
                    echo 'qstat: Unknown Job Id Error 99.head.example.org' >&2
                    exit 153
                fi ;;
            *) exit 9 ;;
        esac
        """,
    )
    fake("pbsnodes", f"[[ $* == -a ]] && cat {FIXTURES}/torque-6/nodes.txt")

    def since() -> list[str]:
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    return since


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (answer_of(0, "", "Version: 6.1.2\nCommit: 661e0925\n"), True),
        (answer_of(0, "", "version: 2.4.16\n"), True),
        (answer_of(0, "version: 4.2.10\n", ""), True),
        (answer_of(0, "pbs_version = 23.06.06\n", ""), False),
        (answer_of(2, "", USAGE), False),
        (answer_of(1, "", "perl: error: fetch_config: DNS SRV lookup failed\n"), False),
    ],
)
def test_torque_is_told_by_its_version(answer: CommandAnswer, expected: bool) -> None:
    assert is_torque(answer) is expected


@pytest.mark.parametrize("dialect", [None, "torque"])
def test_slurms_wrappers_are_not_torque(
    commands: Commands, fake: Fake, tmp_path: Path, dialect: str | None
) -> None:
    (tmp_path / "usage").write_text(USAGE)
    fake("qstat", f"cat {tmp_path}/usage >&2; exit 2")
    with pytest.raises(SchedulerError, match="`backend: slurm`"):
        choose(SiteConfig(backend="pbs", dialect=dialect), commands)


def test_whoever_answers_in_no_known_words_is_not_torque(commands: Commands, fake: Fake) -> None:
    fake("qstat", "echo 'perl: fatal: Could not establish a configuration source' >&2; exit 1")
    with pytest.raises(SchedulerError, match="Could not establish"):
        choose(SiteConfig(backend="pbs", dialect="torque"), commands)


def test_torque_is_chosen_by_itself(commands: Commands, asked: Callable[[], list[str]]) -> None:
    chosen = choose(SiteConfig(backend="pbs"), commands)
    assert type(chosen) is Torque
    assert asked() == []


def test_without_its_package_the_message_names_it(
    commands: Commands, asked: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptor.plugins.installed", lambda _group: {})
    with pytest.raises(SchedulerError, match=r"Torque needs request-adaptor-torque: .*python -m pip install"):
        choose(SiteConfig(backend="pbs"), commands)
    assert asked() == []


def test_our_jobs_are_asked_for_by_their_ids(commands: Commands, asked: Callable[[], list[str]]) -> None:
    torque = Torque(commands)
    found = torque.own_jobs(["105.head.example.org", "99.head.example.org"])
    assert [(job.id, job.tag) for job in found] == [
        ("101.head.example.org", "adaptor-ab12.hpc.7"),
        ("105.head.example.org", "adaptor-ab12.hpc.6"),
    ]
    assert [torque.state_of(job) for job in found] == [JobState.RUNNING, JobState.COMPLETED]
    (first,) = asked()
    assert set(first.split()) == {f"{n}.head.example.org" for n in (101, 106, 105, 99)}
    torque.own_jobs([])
    assert asked() == ["101.head.example.org"]  # 106 is a job of ours that the adaptor did not submit


def test_the_backend_reads_torques_queue(asked: Callable[[], list[str]]) -> None:
    backend = PbsBackend(SiteConfig(backend="pbs", partition="batch"))
    state = backend.queue_state()
    assert state.processors == 8  # node01 and node02 have the property that the queue needs
    assert {(job.id, job.processors) for job in state.running} == {
        ("101.head.example.org", 5),
        ("hidden", 2),  # 99 holds processors of node02, but qstat does not show it
        ("103[2].head.example.org", 0),  # on node03, where only jobs of other queues run
    }
    assert {node.name: node.ours for node in state.nodes} == {"node01": True, "node02": True, "node03": False}
    (on_node03,) = (job for job in state.running if job.id == "103[2].head.example.org")
    assert on_node03.parts == (Part(node="node03", processors=4, memory=3961760 * 1024),)  # it is exclusive
    assert [(job.id, job.processors) for job in state.pending] == [("102.head.example.org", 16)]
    assert state.pending[0].need == Need(
        chunks=3,
        processors=4,
        nodes=frozenset({"node01"}),
        others=(Need(chunks=2, processors=2, nodes=frozenset({"node01", "node02"})),),
    )
    limits = backend.advertised_limits()
    assert (limits.max_proc, limits.max_tr) == (8, 86400)
    assert asked() == []


@pytest.mark.parametrize(
    ("program", "script"),
    [
        ("qstat", "echo 'qstat: cannot connect to server head (errno=111) Connection refused' >&2; exit 111"),
        ("qstat", "echo 'qstat: Unknown queue MSG=cannot locate queue' >&2; exit 153"),
        ("qselect", "echo 'qselect: cannot connect to server head (errno=111)' >&2; exit 111"),
    ],
)
def test_a_server_that_does_not_answer_concludes_nothing(
    commands: Commands, asked: Callable[[], list[str]], fake: Fake, program: str, script: str
) -> None:
    fake(program, script)
    with pytest.raises(SchedulerError, match=f"{program} failed with status"):
        Torque(commands).own_jobs(["101.head.example.org"])


@pytest.mark.parametrize(
    ("errors", "over"),
    [
        ("qdel: Unknown Job Id Error 99.head\n", True),
        ("qdel: nonexistent job id: 99.head\n", True),
        ("qdel: Request invalid for state of job MSG=invalid state for job - COMPLETE 98.head\n", True),
        ("qdel: Unauthorized Request  MSG=operation not permitted 97.head\n", False),
        ("qdel: Unknown Job Id Error 99.head\nqdel: Unauthorized Request 97.head\n", False),
        ("qdel: cannot connect to server head (errno=111) Connection refused\n", False),
        ("qdel: cannot connect to server head (errno=98) Address already in use\n", False),
        ("", False),
    ],
)
def test_what_qdel_says_of_jobs_that_are_gone(commands: Commands, errors: str, over: bool) -> None:
    assert Torque(commands).is_over(answer_of(1, "", errors)) is over
