from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor.bagfile.scripts.getopt import GivenOption
from adaptor.bagfile.scripts.sbatch import SBATCH
from adaptor.batch_script import OWN_SCRIPT, OwnScript
from adaptor.shims.rules import Dependencies, Rules, TooLarge
from adaptor.shims.small_jobs import SmallJob

BODY = b"#!/bin/sh\nhostname\n"


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to submit from, and a site with a partition."""
    config = tmp_path / "site.yaml"
    config.write_text("sites: {hpc: {backend: slurm, partition: batch, processors: 8}}")
    for name in ("ADAPTOR_SHIM_BAG", "SBATCH_PARTITION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ADAPTOR_CONFIG", str(config))
    monkeypatch.chdir(tmp_path)


def given_options(*words: str) -> list[GivenOption]:
    return SBATCH.table.leading(["-t", "5", *words])[0]


def small(*words: str, body: bytes = BODY, awaited: Dependencies | None = None) -> SmallJob:
    return SmallJob(body, "job.sh", given_options(*words), ["a"], Rules(), awaited or Dependencies())


def own(job: SmallJob, body: bytes = b"") -> list[OwnScript]:
    found = [task.environment or {} for task in job.tasks(job.variables, body)]
    return [msgspec.json.decode(each[OWN_SCRIPT], type=OwnScript) for each in found]


def test_jobs_of_one_shape_share_a_bag() -> None:
    shape = small().shape()
    same = [["-J", "x"], ["-o", "x"], ["-D", "/"], ["-a", "1-3"], ["--comment=x"]]
    assert {small(*words).shape() for words in same} == {shape}
    assert small(body=b"#!/bin/sh\ntrue\n").shape() == shape
    others = [["-t", "6"], ["-c", "2"], ["--mem=1G"], ["-G1"], ["--signal=USR1"]]
    assert len({shape, *(small(*words).shape() for words in others)}) == 1 + len(others)
    assert small("-p", "batch").shape() == shape, "the only site"


def test_only_sizes_may_differ_where_jobs_wait_for_each_other() -> None:
    rest = small().rest()
    assert {small(*words).rest() for words in (["-t", "6"], ["-c", "2"], ["--mem=1G"], ["-G1"])} == {rest}
    assert small("--signal=USR1").rest() != rest


def test_a_task_has_what_is_not_its_bags() -> None:
    job = small("-a", "3,5", "-o", "%A-%a", "-e", "err", "--open-mode=append", "-c", "2")
    first, second = own(job, BODY)
    assert first.body == b"", "that of the bag"
    assert (first.place, second.place, first.cpus, first.limit) == (0, 1, 2, 300)
    assert (Path(first.output).name, Path(first.error).name, first.append) == ("%A-%a", "err", True)
    assert own(job)[0].body == BODY
    assert [task.command for task in job.tasks({}, b"")] == [["job.sh", "a"]] * 2
    assert (job.tasks({}, b"")[0].environment or {})["SLURM_ARRAY_TASK_ID"] == "3"
    assert own(small())[0].place is None


def test_a_job_may_come_into_the_bag_that_an_array_has_opened() -> None:
    """It had variables of the array, which the job lacks: what waits for an array was refused."""
    array = small("-a", "1-3")
    assert array.variables.keys() == small().variables.keys()
    told = [task.environment or {} for task in array.tasks(array.variables, b"")]
    assert [each["SLURM_ARRAY_TASK_ID"] for each in told] == ["1", "2", "3"]
    assert {each["SLURM_ARRAY_TASK_COUNT"] for each in told} == {"3"}


def test_the_callers_name_of_a_bag_selects_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADAPTOR_SHIM_BAG", "7")
    with pytest.raises(TooLarge, match=r"ADAPTOR_SHIM_BAG: .*selects other bags"):
        small()


def test_an_array_of_which_only_some_run_has_a_bag_alone() -> None:
    assert small("-a", "1-9%2").alone
    assert not small("-a", "1-9").alone


@pytest.mark.parametrize(
    ("words", "body", "why"),
    [
        (["--exclusive"], BODY, "--exclusive: tasks share nodes"),
        (["-N2"], BODY, "a script has one node"),
        (["-p", "gpu"], BODY, "the configuration of hpc counts, which has batch"),
        (["--reservation=x"], BODY, "not asked for"),
        ([], BODY + b"scontrol requeue $SLURM_JOB_ID\n", "does not know the job number"),
        (["-D", "/nowhere"], BODY, "/nowhere: no such folder"),
    ],
)
def test_what_cannot_be_honoured_is_for_the_scheduler(words: list[str], body: bytes, why: str) -> None:
    with pytest.raises(TooLarge, match=why):
        small(*words, body=body)


def test_what_only_decorates_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    small("--mail-type=END")
    assert capsys.readouterr().err == "adaptor: --mail-type=END: no message is sent; --notify sends one\n"
