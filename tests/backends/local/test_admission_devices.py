"""The GPUs of the local site: which there are, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from adaptor.config.schema import SiteConfig
from adaptor.processes.devices import of_worker
from adaptor.reports import JobState
from adaptor.resources import Part, TaskSize
from backends.local.admission import check_site, devices
from tests.backends.local.local_site import LocalSite

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
    site.backend.cancel([half])
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
