"""What `adaptor site check` says of the nodes that a site's keys leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from backends.commands import Commands
from backends.findings import Finding
from backends.slurm import parse
from backends.slurm.backend import SlurmBackend
from backends.slurm.checking import (
    check_licenses,
    check_partition,
    check_where,
    unknown_answers,
    unknown_release,
)
from backends.slurm.discover import check_site
from backends.slurm.donation import check_donation
from backends.slurm.nodes import Look, find_site, in_service
from backends.slurm.placing.restriction import restriction_of
from backends.slurm.questions import MOST_DISPUTED, Questions, read
from backends.slurm.rows import Partition
from tests.backends.slurm.answers import FIXTURES, RELEASES, Answers, recorded
from tests.backends.slurm.record import LIE


def findings(asked: Questions, **keys: object) -> list[Finding]:
    site = SiteConfig(backend="slurm", **keys)  # type: ignore[arg-type]
    look = Look(details=asked.node_details(), restriction=restriction_of(site))
    nodes = find_site(asked.nodes(), None, look)
    return [*check_partition(nodes), *check_where(site, nodes)]


def test_gpus_are_told(asked: Questions) -> None:
    (told,) = findings(asked)
    assert told.text == "partition batch: 4 nodes in service, 22 processors, 2 GPUs, 2 a100 GPUs"


@pytest.mark.parametrize(
    ("keys", "level", "words"),
    [
        ({"constraint": "old"}, "ok", "requests run on 2 of the 4 nodes"),
        ({"constraint": "gold"}, "error", "they have features fast, new, old, slow; gres gpu:2, gpu:a100:2"),
        ({"constraint": "[old|new]"}, "warning", "a request may wait where a slot is shown"),
        ({"exclude": "n1,x[1-9]"}, "warning", "exclude: partition batch has no x1, x2, x3, x4, x5"),
        ({"nodelist": "n1,y"}, "warning", "nodelist: partition batch has no y"),
        ({"gres": "gpu:1"}, "warning", "submit bags with --gpus instead"),
        (
            {"extra_args": ("-w", "n1")},
            "warning",
            "extra_args: --nodelist: Slurm gives each request parts of all",
        ),
        ({"extra_args": ("--ntasks-per-node=2",)}, "warning", "extra_args: --ntasks-per-node: free slots"),
    ],
)
def test_what_the_keys_leave(asked: Questions, keys: dict[str, object], level: str, words: str) -> None:
    assert [each for each in findings(asked, **keys) if each.level == level and words in each.text]


@pytest.mark.parametrize(
    ("licenses", "level", "words"),
    [
        ("matlab:2", "ok", "licenses: at most 3 requests at a time, by matlab:2"),
        ("matlab:8", "error", "8 of matlab are asked for, and Slurm has 7 (it has matlab:7)"),
        ("gold", "error", "1 of gold are asked for, and Slurm has 0"),
    ],
)
def test_licenses(fake: Callable[[str, str], Path], licenses: str, level: str, words: str) -> None:
    fake("scontrol", "echo LicenseName=matlab Total=7 Used=0 Free=7 Reserved=0 Remote=no")
    (told,) = check_licenses(SiteConfig(backend="slurm", licenses=licenses), Questions(Commands(dict, 30.0)))
    assert told.level == level
    assert words in told.text


BY_PARTITION = {"PreemptType": "preempt/partition_prio", "PreemptMode": "CANCEL"}

Recorded = Callable[[str], str]


@pytest.fixture
def partitions(recorded: Recorded) -> dict[str, Partition]:
    """batch and short with tier 10, and scavenger with tier 1, whose jobs yield within 5 s."""
    return {each.name: each for each in parse.parse_partitions(recorded("plain/partitions.txt"))}


@pytest.fixture
def check(recorded: Recorded, partitions: dict[str, Partition]) -> Callable[..., list[tuple[str, str]]]:
    rows = parse.parse_nodes(recorded("plain/nodes.txt").encode())

    def levels(
        settings: dict[str, str] = BY_PARTITION, donated: dict[str, object] | None = None, **donation: object
    ) -> list[tuple[str, str]]:
        known = {
            **partitions,
            "scavenger": msgspec.structs.replace(partitions["scavenger"], **(donated or {})),
        }
        config = DonationConfig(**{"mode": "preemptible", "partition": "scavenger", **donation})  # type: ignore[arg-type]
        site = SiteConfig(backend="slurm", donation=config)
        return [(each.level, each.text) for each in check_donation(site, rows, known, settings)]

    return levels


def test_without_donation_nothing_is_said(recorded: Recorded, partitions: dict[str, Partition]) -> None:
    rows = parse.parse_nodes(recorded("plain/nodes.txt").encode())
    assert list(check_donation(SiteConfig(backend="slurm"), rows, partitions, BY_PARTITION)) == []


def test_donated_nodes_that_make_room(check: Callable[..., list[tuple[str, str]]]) -> None:
    assert check() == [
        ("ok", "donation: 6 nodes may be donated"),
        ("ok", "donation: jobs of partition scavenger make room for those of batch, with 5s to leave"),
    ]
    assert [level for level, _ in check(mode="agent", partition=None)] == ["ok"]


@pytest.mark.parametrize(
    ("given", "level", "problem"),
    [
        ({"partition": "night"}, "error", "Slurm has no partition night"),
        ({"settings": {"PreemptType": "preempt/none"}}, "error", "Slurm preempts no job here"),
        ({"settings": {}}, "error", "Slurm preempts no job here"),
        ({"donated": {"preempt_mode": "OFF"}}, "error", "are not preempted (PreemptMode=OFF)"),
        ({"donated": {"tier": 10}}, "error", "batch (PriorityTier=10) do not preempt those of scavenger"),
        ({"donated": {"preempt_mode": "SUSPEND,GANG"}}, "warning", "stopped, not ended"),
        ({"donated": {"grace": 0.0}}, "warning", "killed without notice (GraceTime=0)"),
        ({"settings": {"PreemptType": "preempt/qos"}, "qos": "low"}, "warning", "those of QOS low do, with"),
        (
            {"settings": {**BY_PARTITION, "PreemptExemptTime": "00:30:00"}},
            "error",
            "no job makes room in its first 30m (PreemptExemptTime)",
        ),
    ],
)
def test_donated_nodes_that_would_be_in_the_way(
    check: Callable[..., list[tuple[str, str]]], given: dict[str, object], level: str, problem: str
) -> None:
    *_, (found, text) = check(**given)
    assert found == level
    assert problem in text
    assert problem.startswith("Slurm has no") or text.startswith("donation: ")


NEWEST = recorded(RELEASES[-1])


def warnings(question: str, old: str, new: str) -> list[str]:
    text = NEWEST(question)
    assert old in text
    asking = Questions(Answers(NEWEST, replaced={question: text.replace(old, new)}))
    return unknown_answers({}, read(asking), asking.partitions())


def test_of_releases_that_were_tried_nothing_is_unknown(asked: Questions) -> None:
    assert unknown_answers(asked.settings(), read(asked), asked.partitions()) == []


@pytest.mark.parametrize(
    ("question", "old", "new", "words"),
    [
        ("queue", "|SUSPENDED|", "|DREAMING|", "unknown job state 'DREAMING'"),
        ("nodes", "|allocated|", "|melted|", "unknown node state 'melted'"),
        ("job_details", "Exclusive=NO ", "Exclusive=RACK ", "unknown exclusivity 'RACK' (scontrol show job)"),
        ("partitions", "Exclusive=NODE", "Exclusive=RACK", "unknown exclusivity 'RACK' (scontrol show part"),
        ("job_details", " MCS_label=", " Label=", "unknown form of records"),
        ("job_details", " Network=", " Net=", "unknown form of records"),
        ("job_details", " CPU_IDs=", " Cores=", "unknown form of records"),
    ],
)
def test_an_unknown_word_is_reported(question: str, old: str, new: str, words: str) -> None:
    (found,) = warnings(question, old, new)
    assert found.startswith(words)


def test_many_imitated_records_are_reported() -> None:
    asking = Questions(Answers(NEWEST))
    rows = asking.queue()
    texts = "\n".join(
        LIE.replace("JobId=1 JobName=uneven", f"JobId={row.id} JobName={row.name}") for row in rows
    )
    asking = Questions(Answers(NEWEST, replaced={"job_details": NEWEST("job_details") + texts}))
    plain = [row for row in rows if row.id.isdigit()]
    details = asking.job_details(rows)
    assert 1 < len(details.disputed) <= len(plain)
    assert len(details.disputed) <= MOST_DISPUTED or unknown_answers({}, read(asking), [])


def test_nodes_in_an_unknown_state_take_no_request() -> None:
    asking = Questions(
        Answers(NEWEST, replaced={"nodes": NEWEST("nodes").replace("|allocated|", "|melted|")})
    )
    assert {row.state for row in asking.nodes() if in_service(row)} == {"mixed"}


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("22.05.8", ""),
        ("23.11.0", ""),
        ("26.05.5", ""),
        ("", ""),
        ("21.08.8-2", "Slurm 21.08.8-2 is older than 22.05"),
        ("20.11.9", "Slurm 20.11.9 is older than 22.05"),
        ("26.11.0", "Slurm 26.11.0 is newer than 26.05"),
        ("27.05.0rc1", "Slurm 27.05.0rc1 is newer than 26.05"),
    ],
)
def test_releases_that_were_not_tried_are_reported(version: str, words: str) -> None:
    found = unknown_release({"SLURM_VERSION": version})
    assert found.startswith(words)
    assert bool(found) == bool(words)


@pytest.fixture
def answering(fake: Callable[[str, str], Path], fake_squeue: Callable[[str], Path]) -> None:
    """The newest release, but for a word that it does not have, as one that comes later."""
    folder = FIXTURES / RELEASES[-1]
    fake_squeue(f"sed 's/SUSPENDED/DREAMING/' {folder}/queue.txt")
    fake("sinfo", f"cat {folder}/nodes.txt")
    show = "; ".join(
        f"[[ $2 == {word} ]] && cat {folder}/{question}.txt"
        for word, question in (
            ("node", "node_details"),
            ("reservation", "reservations"),
            ("job", "job_details"),
        )
    )
    config = f"[[ $2 == config ]] && sed 's/{RELEASES[-1]}/27.11/' {folder}/settings.txt"
    fake("scontrol", f"{show}; {config}; [[ $2 == partition ]] && cat {folder}/partitions.txt; true")
    for program in ("sacct", "sacctmgr"):
        fake(program, "exit 1")
    fake("sbatch", "true")


@pytest.mark.usefixtures("answering")
def test_the_check_of_a_site_and_the_state_of_its_queue_say_so() -> None:
    site = SiteConfig(backend="slurm")
    told = [finding.text for finding in check_site(site) if finding.level == "warning"]
    assert [text for text in told if text.startswith("Slurm 27.11.5 is newer than 26.05")]
    assert [text for text in told if text.startswith("unknown job state 'DREAMING'")]
    found = SlurmBackend(site).queue_state().unknown
    assert [text[:30] for text in found] == [
        "Slurm 27.11.5 is newer than 26",
        "unknown job state 'DREAMING' (",
    ]
