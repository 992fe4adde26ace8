"""`adaptor site init` and `adaptor site check` on the recorded cell."""

from __future__ import annotations

from unittest import mock

import pytest
import yaml

from adaptor.config.schema import SiteConfig
from backends.commands import CommandAnswer
from backends.findings import Finding
from backends.gridengine import discover
from backends.registry import backend_type
from tests.backends.answering import answer_of
from tests.backends.gridengine.recorded_cell import RecordedCell, backend, recorded


def findings(**answers: CommandAnswer | str) -> list[Finding]:
    return discover.check_site(SiteConfig(backend="gridengine"), RecordedCell(**answers))


def warnings(**answers: CommandAnswer | str) -> list[str]:
    return [found.text for found in findings(**answers) if found.level != "ok"]


def test_a_configuration_is_written() -> None:
    with mock.patch.object(discover, "HERE", RecordedCell()):
        text = discover.describe_sites()
    sites = yaml.safe_load(text)["sites"]
    assert sites == {
        "all-q": {
            "backend": "gridengine",
            "partition": "all.q",
            "limits": {"max_pending_requests": 4, "max_proc": 16, "max_tr": "1d"},
            "processors_per_node": 4,
        }
    }
    assert "max_tr: 30m  # h_rt of queue short.q" in text
    assert "for Grid Engine (SGE 8.1.9)" in text


def test_what_is_as_it_should_be() -> None:
    told = [found.text for found in findings() if found.level == "ok"]
    assert "Grid Engine answers (SGE 8.1.9)" in told
    assert "queue all.q: 3 nodes in service, 12 processors" in told
    assert "parallel environments of queue all.q: smp ($pe_slots), mpi ($fill_up)" in told
    assert warnings() == []


def test_what_may_surprise() -> None:
    assert any("no records" in text for text in warnings(qacct=answer_of(1, "", "Permission denied")))
    assert warnings(qstat=answer_of(1, "", "commlib error")) == ["qstat failed with status 1: commlib error"]


def test_the_limits_that_grid_engine_sets() -> None:
    limits = backend(RecordedCell(), partition="short.q").advertised_limits()
    assert (limits.max_proc, limits.max_tr) == (16, 1800)


def test_partitions_share_one_reading_of_the_qmaster(tmp_path: object) -> None:
    cell = RecordedCell()
    type = backend_type("gridengine")
    sites = {name: SiteConfig(backend="gridengine", partition=name) for name in ("all.q", "short.q")}
    made = type.make_each("hpc", sites, mock.Mock(), cell)
    assert [each.queue_state().processors for each in made.values()] == [12, 16]
    asked = [words for words in cell.asked if words[0] == "qstat"]
    assert len(asked) <= 2, "hidden slots make it look again"


def test_keys_that_name_nodes_are_refused() -> None:
    site = SiteConfig(backend="gridengine", constraint="fast", gres="gpu:1")
    problems = dict(backend_type("gridengine").key_problems(site))
    assert set(problems) == {"constraint", "gres"}
    assert all("extra_args" in problem for problem in problems.values())


@pytest.mark.parametrize("name", ["qconf-sq.txt", "qconf-sp-mpi.txt"])
def test_an_environment_that_gives_one_host_only_is_told(name: str) -> None:
    mpi = recorded("qconf-sp-mpi.txt").replace("control_slaves     TRUE", "control_slaves     FALSE")

    class Uncontrolled(RecordedCell):
        def run(self, arguments, variables, timeout):  # type: ignore[no-untyped-def]
            return (
                answer_of(0, mpi, "")
                if arguments[-1] == "mpi"
                else super().run(arguments, variables, timeout)
            )

    found = discover.check_site(SiteConfig(backend="gridengine"), Uncontrolled())
    assert any("control_slaves TRUE" in each.text and each.level == "warning" for each in found)
