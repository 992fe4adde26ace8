"""A request that is submitted over ssh while the connection is lost: never lost, never there twice."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor.config.schema import SiteConfig, SshConfig
from adaptor.reports import JobReport
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.machines.distant import Distant
from backends.slurm.backend import SlurmBackend
from tests.backends.orders import order
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.sshd import BREAK_CONNECTION, ThrowawaySshd
from tests.living import PATIENCE

pytestmark = [pytest.mark.slurm, pytest.mark.ssh]

Make = Callable[[str], SlurmBackend]


@pytest.fixture
def backend_with(
    slurm: ThrowawaySlurm, sshd: ThrowawaySshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    """A backend over ssh, given the lines of the `sbatch` that it finds there; `$real` is Slurm's own."""
    machines: list[Distant] = []
    monkeypatch.delenv("SLURM_CONF")  # what is known here is not known there

    def make(lines: str) -> SlurmBackend:
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "sbatch").write_text(f"#!/bin/bash\nreal=/usr/bin/sbatch\n{BREAK_CONNECTION}\n{lines}\n")
        (folder / "sbatch").chmod(0o755)
        variables = {"SLURM_CONF": str(slurm.conf), "PATH": f"{folder}:/usr/bin:/bin"}
        site = SiteConfig(backend="slurm", environment=variables)
        machines.append(Distant(msgspec.convert(sshd.site(), SshConfig), variables, 20, sys.executable))
        return SlurmBackend(site, machines[-1])

    yield make
    for machine in machines:
        machine.close()


def order_in(folder: Path) -> PilotOrder:
    return order(1, 120, tag=f"{folder.name}-1", directory=folder, worker=("/bin/sleep", "300"))


def jobs_soon(backend: SlurmBackend, folder: Path) -> list[JobReport]:
    """What the scheduler has, once it answers again and has something."""
    give_up = time.monotonic() + 120
    while time.monotonic() < give_up:
        try:
            if found := backend.jobs([], folder.name):
                return found
        except SchedulerError:
            pass  # the connection is being made again
        time.sleep(0.2)
    return []


def test_cut_after_slurm_has_it(backend_with: Make, tmp_path: Path) -> None:
    backend = backend_with('"$real" "$@"; break_connection; sleep 5')
    with pytest.raises(SubmitUncertain, match="the connection was lost before it had answered"):
        backend.submit(order_in(tmp_path))
    assert [job.tag for job in jobs_soon(backend, tmp_path)] == [f"{tmp_path.name}-1"]


def test_cut_before_slurm_has_it(backend_with: Make, tmp_path: Path) -> None:
    backend = backend_with('break_connection; sleep 1; "$real" "$@"')
    with pytest.raises(SubmitUncertain):
        backend.submit(order_in(tmp_path))
    assert [job.tag for job in jobs_soon(backend, tmp_path)] == [f"{tmp_path.name}-1"]


def test_without_a_connection_it_is_certain_that_nothing_was_submitted(
    backend_with: Make, sshd: ThrowawaySshd, tmp_path: Path
) -> None:
    backend = backend_with('exec "$real" "$@"')
    assert backend.jobs([], tmp_path.name) == []
    sshd.stop()
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        with pytest.raises(SchedulerError) as caught:
            backend.submit(order_in(tmp_path))
        if "cannot connect" in str(caught.value):
            break
    assert not isinstance(caught.value, SubmitUncertain | SubmitRefused)
