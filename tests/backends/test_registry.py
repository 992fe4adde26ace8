"""What the types of batch scheduler say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from adaptor.config.schema import SiteConfig
from adaptor.errors import AdaptorError, ConfigError
from backends import registry
from backends.base import SchedulerError
from backends.machines.base import CommandHung
from backends.machines.here import HERE
from backends.pbs import discover
from backends.registry import backend_type, backend_types
from tests.backends.distribution import installed

OURS = ("local", "slurm", "pbs")


@pytest.mark.parametrize("name", OURS)
def test_a_new_backend_rounds_as_its_type_says(name: str, tmp_path: Path) -> None:
    """A simulation, which has only the type, and a daemon before the first answer shape the same requests."""
    backend = backend_type(name).make("here", SiteConfig(backend=name), tmp_path, HERE)
    known = backend_type(name)
    assert (backend.time_resolution, backend.slot_margin) == (known.time_resolution, known.slot_margin)


def test_slurm_is_asked_before_pbs_whose_commands_it_may_imitate_and_this_machine_last() -> None:
    ours = {backend_type(name): name for name in OURS}
    assert [ours[each] for each in backend_types() if each in ours] == ["slurm", "pbs", "local"]


def test_a_job_of_the_local_site_outlives_its_limit_by_its_grace_time() -> None:
    site = SiteConfig(backend="local")
    assert backend_type("local").overrun(site) == float(site.grace_time) + 5
    assert backend_type("slurm").overrun(site) == backend_type("pbs").overrun(site) == 90


def test_a_class_in_place_of_its_object_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from backends.local.backend_type import LocalType as TYPE\n"
    monkeypatch.syspath_prepend(installed(tmp_path, "wrong", code))
    with pytest.raises(ConfigError, match="is not a BackendType"):
        backend_type("wrong")


@pytest.mark.parametrize("name", OURS)
def test_only_schedulers_of_clusters_donate_and_are_reached_over_ssh(name: str) -> None:
    known = backend_type(name)
    assert known.over_ssh == bool(known.donation_modes) == (not known.on_this_machine)


def test_the_batch_scheduler_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def kind(title: str, answers: bool, *, local: bool = False) -> SimpleNamespace:
        return SimpleNamespace(title=title, on_this_machine=local, answers=lambda: answers)

    kinds = [kind("PBS", False), kind("Slurm", True), kind("machine", True, local=True)]
    monkeypatch.setattr(registry, "backend_types", lambda: kinds)
    assert registry.answering() == "Slurm"
    del kinds[1]
    assert registry.answering() == ""


def test_without_its_package_a_login_node_of_grid_engine_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = SimpleNamespace(title="machine", on_this_machine=True, describe_sites=lambda: "sites: {}\n")
    monkeypatch.setattr(registry, "backend_types", lambda: [here])
    monkeypatch.setattr(registry, "backend_names", lambda: ["local", "slurm"])
    monkeypatch.delenv("SGE_ROOT", raising=False)
    assert registry.answering() == ""
    assert registry.described_here() == "sites: {}\n"
    monkeypatch.setenv("SGE_ROOT", "/opt/sge")
    assert registry.answering() == "Grid Engine"
    with pytest.raises(AdaptorError, match="SGE_ROOT names here, needs request-adaptor-gridengine: "):
        registry.described_here()


@pytest.mark.parametrize(
    ("sinfo", "here"),
    [
        ("echo batch", True),
        (
            "echo 'slurm_load_partitions: Unable to contact slurm controller (connect failure)' >&2; exit 1",
            True,
        ),
        ("echo 'sinfo: fatal: Could not establish a configuration source' >&2; exit 1", False),
        ("exit 127", False),
    ],
)
def test_slurm_is_here_where_a_controller_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sinfo: str, here: bool
) -> None:
    fake = tmp_path / "sinfo"
    fake.write_text(f"#!/bin/sh\n{sinfo}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert backend_type("slurm").answers() is here


def test_a_scheduler_that_hangs_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(error: SchedulerError) -> Callable[[], str]:
        def describe(timeout: float = 30.0) -> str:
            raise error

        return describe

    kind = backend_type("pbs")
    monkeypatch.setattr(discover, "describe_sites", fails(CommandHung("qstat does not answer")))
    assert kind.answers()
    monkeypatch.setattr(discover, "describe_sites", fails(SchedulerError("no qstat")))
    assert not kind.answers()
