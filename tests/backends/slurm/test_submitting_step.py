"""What a script says of the generic resources of its workers' steps."""

from __future__ import annotations

import pytest

from backends.slurm.submitting import step_gres


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ntasks=4", "--cpus-per-task=2"], ""),
        (["--gpus-per-task=1"], "gpu: 0 1"),
        (["--gpus-per-task=a100:2"], "gpu:a100: 0 2"),
        (["--gpus-per-task=1g.5gb:1"], "gpu:1g.5gb: 0 1"),
        (["--exclusive", "--gpus-per-node=h100:4"], "gpu:h100: 4 0"),
        (["--gpus-per-task=1", "--gres=lustre:1"], "gpu: 0 1 lustre: 1 0"),
        (["--gres=shard:4"], "shard: 4 0"),
        (["--gres=gpu"], "gpu: 1 0"),
        (["--gres=gres/gpu:a100:2,lustre"], "gpu:a100: 2 0 lustre: 1 0"),
        (["--gpus-per-task", "2"], "gpu: 0 2"),
        (["--gres=gpu:1", "--gres=gpu:2"], "gpu: 2 0"),
        (["--gres=(,)", "--gpus-per-task=1"], "gpu: 0 1"),
        (["--gres"], ""),
        (["--gres=a b':2"], "'a b'\"'\"':' 2 0"),
    ],
)
def test_they_are_those_of_the_request(arguments: list[str], words: str) -> None:
    assert step_gres(arguments) == words
