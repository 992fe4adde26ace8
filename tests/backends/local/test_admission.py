"""What a request takes from a local site."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.config.schema import SiteConfig
from adaptor.processes.devices import of_worker
from adaptor.reports import JobState
from adaptor.resources import Part, TaskSize
from backends.base import SubmitRefused
from backends.local.admission import LocalMachine, admit, check_site, devices, this_machine
from tests.backends.local.local_site import LocalSite
from tests.backends.orders import order, own

GIB = 1024**3


@given(st.integers(1, 64), st.data())
def test_a_job_holds_what_its_tasks_need_and_its_worker_may_use_no_more(
    processors: int, data: st.DataObject
) -> None:
    machine = LocalMachine(processors, data.draw(st.integers(processors, 64 * GIB)), ("0", "1", "2"))
    p = data.draw(st.integers(1, processors))
    memory = data.draw(st.none() | st.integers(0, machine.memory // p))
    gpus = data.draw(st.sampled_from([0, 1 / 8, 1]))
    assume(p * gpus <= 3)
    admission = admit(order(p, task=TaskSize(memory=memory, gpus=gpus)), machine)
    held = (("", math.ceil(p * gpus)),) if gpus else ()
    assert admission.holds == Part(node="local", processors=p, memory=p * (memory or 0), gpus=held)
    assert admission.holds.memory <= admission.memory <= machine.memory


def test_a_job_that_does_not_say_what_memory_it_needs_may_use_what_goes_with_its_processors() -> None:
    found = admit(order(2), LocalMachine(8, 16 * GIB))
    assert (found.holds.memory, found.memory) == (0, 4 * GIB)


def test_memory_does_not_take_processors() -> None:
    found = admit(order(4, task=TaskSize(processors=2, memory=5 * GIB)), LocalMachine(8, 16 * GIB))
    assert (found.holds, found.memory) == (Part(node="local", processors=4, memory=10 * GIB), 10 * GIB)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (TaskSize(gpus=1), r"3 GPUs were asked for, but the local site has 2; .* set `gpus` of the site"),
        (
            TaskSize(gpus=0.5, gpu_type="a100"),
            "a100 GPUs were asked for, but the local site does not know types",
        ),
        (TaskSize(nodes=2), "each task needs 2 nodes, and the local site is one machine"),
    ],
)
def test_what_the_machine_never_has_is_refused(task: TaskSize, words: str) -> None:
    with pytest.raises(SubmitRefused, match=words):
        admit(order(3, task=task), LocalMachine(4, GIB, ("0", "1")))


def test_more_memory_than_there_is_is_refused_with_the_numbers() -> None:
    with pytest.raises(SubmitRefused, match=r"20G of memory .* has 16G"):
        admit(order(4, task=TaskSize(memory=5 * GIB)), LocalMachine(8, 16 * GIB))


@pytest.mark.parametrize(("p", "tr"), [(0, 60), (1, 0), (-1, 60)])
def test_nothing_is_no_request(p: int, tr: int) -> None:
    with pytest.raises(SubmitRefused, match="both must be 1 or more"):
        admit(order(p, tr), LocalMachine(8, GIB))


def test_a_site_may_claim_more_processors_than_the_machine_has() -> None:
    assert this_machine(4096).processors == 4096
    assert this_machine(None).processors >= 1


SAY = (
    'echo "$CUDA_VISIBLE_DEVICES|$ROCR_VISIBLE_DEVICES|$ADAPTOR_GPUS" >"$ADAPTOR_DIRECTORY/said"; '
    "exec sleep 300"
)


@pytest.mark.parametrize(
    ("configured", "environment", "ids"),
    [
        (2, {"CUDA_VISIBLE_DEVICES": "7"}, ("0", "1")),
        (0, {}, ()),
        ([3, "GPU-ab"], {}, ("3", "GPU-ab")),
        (None, {"CUDA_VISIBLE_DEVICES": "2, 5,2"}, ("2", "5")),
        (None, {"CUDA_VISIBLE_DEVICES": "-1"}, ()),
        (None, {}, ("0", "2", "10")),
    ],
)
def test_which_there_are(
    tmp_path: Path,
    configured: int | list[int | str] | None,
    environment: dict[str, str],
    ids: tuple[str, ...],
) -> None:
    for name in ("nvidia0", "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "sda"):
        (tmp_path / name).touch()
    assert devices(configured, environment, tmp_path) == ids


def test_a_worker_sees_those_that_its_job_holds() -> None:
    inherited = {"CUDA_VISIBLE_DEVICES": "0,1", "HIP_VISIBLE_DEVICES": "1", "X": "y"}
    assert of_worker(None, inherited) == inherited
    assert of_worker(["1"], inherited) == {
        "X": "y",
        "CUDA_VISIBLE_DEVICES": "1",
        "ROCR_VISIBLE_DEVICES": "1",
        "ZE_AFFINITY_MASK": "1",
        "ADAPTOR_GPUS": "1",
    }
    assert of_worker([], inherited)["CUDA_VISIBLE_DEVICES"] == ""


@pytest.fixture
def gpu_site(make_site: Callable[..., LocalSite]) -> LocalSite:
    return make_site(4, gpus=(3, "GPU-ab"))


def submit(site: LocalSite, p: int, gpus: float) -> str:
    return site.backend.submit(msgspec.structs.replace(site.order(SAY, p), task=TaskSize(gpus=gpus)))


def said(site: LocalSite, number: int) -> str:
    return (site.directory(number) / "said").read_text().strip()


def test_no_device_is_held_twice_and_what_ends_gives_its_own_back(gpu_site: LocalSite) -> None:
    site = gpu_site
    first, half, none, late = submit(site, 1, 1), submit(site, 1, 0.5), submit(site, 1, 0), submit(site, 1, 1)
    for id in (first, half, none):
        site.reaches(id, JobState.RUNNING)
    state = site.backend.queue_state()
    assert state.nodes[0].gpus == (("", 2),)
    assert [job.parts[0].gpus for job in state.running] == [(("", 1),), (("", 1),), ()]
    assert [(job.id, job.parts) for job in state.pending] == [
        (late, (Part(node="local", processors=1, gpus=(("", 1),)),))
    ]
    site.backend.cancel(own(site.backend, half))
    site.reaches(half, JobState.CANCELLED)
    site.reopened()
    site.reaches(late, JobState.RUNNING)
    site.wrote("said", 1, 2, 3, 4)
    assert [said(site, number) for number in (1, 2, 3, 4)] == [
        "3|3|1",
        "GPU-ab|GPU-ab|1",
        "||0",
        "GPU-ab|GPU-ab|1",
    ]


def test_the_check_names_them() -> None:
    texts = [
        found.text for found in check_site(SiteConfig(backend="local", processors=1, gpus=(3, "GPU-ab")))
    ]
    assert "2 GPUs: 3, GPU-ab; tasks without `gpus` see none" in texts
