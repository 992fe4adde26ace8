"""What is said of answers in words that no release tried so far has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adaptor.config.schema import SiteConfig
from backends.slurm.backend import SlurmBackend
from backends.slurm.checking import unknown_answers, unknown_release
from backends.slurm.discover import check_site
from backends.slurm.nodes import in_service
from backends.slurm.questions import MOST_DISPUTED, Questions, read
from tests.backends.slurm.answers import FIXTURES, RELEASES, Answers, recorded
from tests.backends.slurm.record import LIE

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
