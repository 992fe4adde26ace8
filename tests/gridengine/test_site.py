"""`adaptor site init` and `adaptor site check` on the recorded cell."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
import yaml

from adaptor.config.schema import SiteConfig
from adaptor.resources import TaskSize
from adaptor_gridengine import discover
from adaptor_gridengine.backend import accepted_id, choose_pe, deleted_waiting, nothing_left
from adaptor_gridengine.parse import Pe
from adaptor_gridengine.reading import Master
from backends.base import ChangeRefused, PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.commands import CommandAnswer
from backends.findings import Finding
from backends.registry import backend_type
from tests.backends.answering import answer_of
from tests.backends.orders import order
from tests.gridengine.recorded_cell import RecordedCell, backend, recorded, seen


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
            "limits": {"max_pending_requests": 4, "max_pilots": 500, "max_proc": 16, "max_tr": "1d"},
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


def test_reservations_are_asked_for_by_their_ids_and_only_where_there_are_some() -> None:
    def read(**answers: CommandAnswer | str) -> tuple[int, list[list[str]]]:
        machine = RecordedCell(**answers)
        reserved = Master(SiteConfig(backend="gridengine"), machine).see().reservations
        return len(reserved), [words[1:] for words in machine.asked if words[0] == "qrstat"]

    listed, one = ["-xml", "-u", "*"], ["-xml", "-ar", "2"]
    assert read() == (1, [listed, one])
    assert read(qrstat=answer_of(1, "", "no advance reservations")) == (0, [listed])


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


def test_the_arguments_of_qsub() -> None:
    cell = RecordedCell()
    assert backend(cell, account="physics", extra_args=("-l", "arch=lx-amd64")).submit(order(6)) == "77"
    assert " ".join(cell.command("qsub")) == (
        "-terse -N adaptor-x.hpc.7 -q all.q -l h_rt=600 -pe mpi 6 -P physics -notify -w e -R y -r n -m n "
        "-S /bin/bash -C  -wd /pilots/7 -j y -o :/pilots/7/gridengine.out -l arch=lx-amd64 /pilots/7/pilot.sh"
    )


def test_memory_is_asked_for_each_slot() -> None:
    cell = RecordedCell()
    backend(cell).submit(order(4, task=TaskSize(processors=2, memory=3 * 2**30)))
    words = cell.command("qsub")
    assert words[words.index("-l") + 1] == f"h_rt=600,h_vmem={3 * 2**20 // 2}K"
    assert words[words.index("-pe") + 1 :][:2] == ["smp", "4"]


@pytest.mark.parametrize(
    ("wanted", "keys", "problem"),
    [
        (order(17), {}, r"17 processors were asked for, .* gives at most 16 \(all slots of queue all\.q\)"),
        (order(2, 3600), {"partition": "short.q"}, "takes at most 1800 s"),
        (order(6, task=TaskSize(processors=3)), {}, "there are: smp .*lower `limits.max_proc`"),
        (order(8), {"whole_nodes": True, "processors_per_node": 4}, "allocation_rule 4"),
        (order(1, task=TaskSize(gpus=1)), {}, "no common word for GPUs"),
    ],
)
def test_what_can_never_start_is_refused_with_the_way_out(
    wanted: PilotOrder, keys: dict[str, Any], problem: str
) -> None:
    cell = RecordedCell()
    with pytest.raises(SubmitRefused, match=problem):
        backend(cell, **keys).submit(wanted)
    assert "qsub" not in [words[0] for words in cell.asked]


PES = {
    "one": Pe(name="one", slots=99, rule="$pe_slots"),
    "any": Pe(name="any", slots=99, rule="$round_robin", controls=True),
    "four": Pe(name="four", slots=99, rule="4", controls=True),
    "loose": Pe(name="loose", slots=999, rule="$fill_up"),
}


@pytest.mark.parametrize(
    ("wanted", "there", "chosen"),
    [
        (order(1), "one any four", None),
        (order(6), "one any four", "any"),
        (order(3), "one loose", "one"),
        (order(8), "one four loose", "four"),
        (order(4, task=TaskSize(processors=2)), "one any four", "one"),
        (order(8, task=TaskSize(processors=2)), "one any four", "four"),
    ],
)
def test_the_parallel_environment_of_a_request(wanted: PilotOrder, there: str, chosen: str | None) -> None:
    known = seen(pes={name: PES[name] for name in there.split()})
    found = choose_pe(
        wanted, SiteConfig(backend="gridengine"), list(known.cell.pes.values()), known.nodes("short.q")
    )
    assert (found.name if found else None) == chosen


NO_QUEUE = "Unable to run job: error: no suitable queues\nExiting.\n"
NO_PE = 'Unable to run job: job rejected: the requested parallel environment "x" does not exist\nExiting.\n'
AWAY = 'Unable to run job: unable to send message to qmaster using port 1 on host "h": got send error\n'


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answer_of(1, "", NO_QUEUE), SubmitRefused),
        (answer_of(1, "", NO_PE), SubmitRefused),
        (answer_of(1, "", AWAY), SchedulerError),
        (answer_of(1, "", "failed receiving gdi request response for mid=1"), SubmitUncertain),
        (answer_of(-9, "", NO_QUEUE), SubmitUncertain),
        (answer_of(0, "your job is on its way", ""), SubmitUncertain),
    ],
)
def test_what_the_answers_of_qsub_mean(answer: CommandAnswer, error: type[SchedulerError]) -> None:
    with pytest.raises(error) as caught:
        accepted_id(answer)
    assert type(caught.value) is error


def test_the_id_is_found_behind_greetings() -> None:
    assert accepted_id(answer_of(0, "Welcome to 3 hosts!\n77\n", "")) == "77"


def test_unknown_and_ended_jobs_are_no_error_of_qdel() -> None:
    answer = answer_of(
        1, 'denied: job "777" does not exist\njob 7 is already in deletion\nbob has deleted job 9', ""
    )
    assert nothing_left(answer)
    assert deleted_waiting(answer) == ["9"]
    assert not nothing_left(answer_of(1, "", "denied: permission for job 3"))


def test_a_request_is_never_changed() -> None:
    with pytest.raises(ChangeRefused):
        backend(RecordedCell()).reshape("7", order())


def test_an_array_is_one_submission() -> None:
    cell = RecordedCell(qsub="42.1-40:1\n")
    ids = backend(cell).submit_array(order(tag="adaptor-x.hpc.12", pilots=40))
    assert (ids[0], ids[-1], len(ids)) == ("42.1", "42.40", 40)
    words = cell.command("qsub")
    assert words[words.index("-t") + 1] == "1-40"
    assert words[words.index("-N") + 1] == "adaptor-x.hpc.12-51"
    assert words[-1] == "/pilots/7/adaptor-x.hpc.12-51.sh"
