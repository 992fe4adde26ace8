"""Which GPUs a pilot has on this node, and what a task is told of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.processes.devices import Devices, devices_of


@pytest.mark.parametrize(
    ("environment", "ids"),
    [
        ({}, ()),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "0,2"}, ("0", "2")),
        ({"CUDA_VISIBLE_DEVICES": " 1, 1,0 "}, ("1", "0")),
        ({"CUDA_VISIBLE_DEVICES": "GPU-5a3c, MIG-GPU-5a3c/1/0"}, ("GPU-5a3c", "MIG-GPU-5a3c/1/0")),
        ({"ROCR_VISIBLE_DEVICES": "3", "SLURM_JOB_GPUS": "0"}, ("3",)),
        ({"ZE_AFFINITY_MASK": "0.0,0.1"}, ("0.0", "0.1")),
        ({"SLURM_JOB_GPUS": "0-2,5"}, ("0", "1", "2", "5")),
        ({"SLURM_STEP_GPUS": "1", "SLURM_JOB_GPUS": "0,1"}, ("1",)),
        ({"ADAPTOR_GPUS": "2"}, ("0", "1")),
        ({"ADAPTOR_GPUS": "many"}, ()),
    ],
)
def test_what_the_scheduler_gave(environment: dict[str, str], ids: tuple[str, ...]) -> None:
    assert devices_of(environment).ids == ids


def test_a_task_gets_its_share_in_the_terms_of_the_scheduler() -> None:
    devices = devices_of({"CUDA_VISIBLE_DEVICES": "0,1", "ROCR_VISIBLE_DEVICES": "4,5"})
    told = {"CUDA_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "5", "ADAPTOR_GPUS": "1"}
    assert devices.of_task((1,)) == told


def test_a_task_without_gpus_sees_none_and_a_node_without_hides_none() -> None:
    hidden = devices_of({"CUDA_VISIBLE_DEVICES": "0,1"}).of_task(())
    assert hidden == {"CUDA_VISIBLE_DEVICES": "", "ADAPTOR_GPUS": ""}
    assert Devices({}).of_task(()) == {}


def test_where_no_library_was_told_all_are() -> None:
    told = devices_of({"SLURM_JOB_GPUS": "3"}).of_task((0,))
    assert set(told) == {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "ADAPTOR_GPUS"}
    assert set(told.values()) == {"3"}


@given(
    st.dictionaries(st.sampled_from(["CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "ADAPTOR_GPUS"]), st.text())
)
def test_no_text_names_a_gpu_twice(environment: dict[str, str]) -> None:
    ids = devices_of(environment).ids
    assert len(set(ids)) == len(ids)
    assert "" not in ids
