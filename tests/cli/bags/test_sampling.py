"""A sample is bought once for each run of a bag, and none where earlier bags of its kind tell enough."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from adaptor import api
from adaptor.bag_spec import BagSpec
from adaptor.budget.provisioning.menu_line import Line
from adaptor.cli.bags.sampling import QuotedBag, by_earlier_bags, take_samples
from adaptor.errors import AdaptorError, UsageError
from adaptor.model import Estimate
from tests.cli.fake_control import bag_view, task_view

SPEC = BagSpec(name="sweep", cwd="/", output="/o", environment={"SHLVL": "1"})
BAG = api.BagInput(spec=SPEC, tasks=[api.TaskInput(f"./fit {number}") for number in range(60)])
TASKS = 30
"""Of a sample."""


class Daemon:
    """Answers what a quote asks; every sample has ended by the next question."""

    def __init__(self) -> None:
        self.bags: list[api.BagView] = []
        self.fails = False
        self.plan = SimpleNamespace(known=False, choices=[], earlier=[])
        self._keys: dict[str, int] = {}

    def submit(self, name: str, tasks: int = TASKS) -> int:
        done = 0 if self.fails else tasks
        number = len(self.bags) + 1
        self.bags.append(bag_view(number, name=name, tasks=tasks, done=done, failed=tasks - done))
        return number

    def client(self) -> SimpleNamespace:
        return SimpleNamespace(submit=self._submitted)

    def _submitted(self, bag: api.BagInput, key: str) -> api.Submitted:
        if key not in self._keys:
            self._keys[key] = self.submit(bag.spec.name, len(bag.tasks))
        return api.Submitted(self._keys[key])

    def __call__(self, question: object, timeout: float = 0.0) -> Any:
        match question:
            case api.GetSites():
                return [SimpleNamespace(name="here", max_in_system=1, max_proc=8, processors=8, pad=30.0)]
            case api.GetCredits():
                return SimpleNamespace(
                    prices=[SimpleNamespace(site="here", explicit=10.0, gpu=0.0, charging_unit=1, grace=0)]
                )
            case api.GetBags("all"):
                return api.Bags(list(self.bags))
            case api.GetTasks(bag):
                return [task_view(task, bag=bag) for task in range(self.bags[bag - 1].done)]
            case api.GetPlan(spec, tasks):
                assert tasks == len(BAG.tasks)
                assert [kind.name for kind in spec.kinds] == ["fit"]
                return self.plan
            case api.GetReport():
                return SimpleNamespace(requests=[])
        raise AssertionError(question)


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Daemon:
    found = Daemon()
    monkeypatch.setattr("adaptor.cli.bags.sampling.ask", found)
    monkeypatch.setattr("adaptor.cli.bags.sampling.Client", lambda: nullcontext(found.client()))
    monkeypatch.setattr("adaptor.cli.bags.sampling.follow", lambda _: iter(()))
    return found


def quoted(bag: api.BagInput = BAG) -> QuotedBag:
    return take_samples(bag)


def test_the_same_bag_is_sampled_once_and_says_so(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    first = quoted()
    assert capsys.readouterr().err == "bag 1: 30 tasks as a sample at here\n"
    later = msgspec.structs.replace(SPEC, environment={"SHLVL": "2"})
    assert quoted(msgspec.structs.replace(BAG, spec=later)).samples == first.samples == [1]
    assert capsys.readouterr().err == (
        "bag 1: 30 tasks as a sample at here, run by an earlier quote (to sample again: adaptor forget 1)\n"
    )
    assert len(quoted().rest.tasks) == len(BAG.tasks) - TASKS
    assert quoted().lines == first.lines


def test_other_tasks_and_other_options_have_a_sample_of_their_own(daemon: Daemon) -> None:
    quoted()
    shorter = msgspec.structs.replace(BAG, tasks=BAG.tasks[:50])
    wider = msgspec.structs.replace(BAG, spec=msgspec.structs.replace(SPEC, cpus=2))
    assert [quoted(bag).samples for bag in (shorter, wider)] == [[2], [3]]


def test_the_next_run_of_a_bag_has_results_of_its_own(daemon: Daemon) -> None:
    quoted()
    daemon.submit("another")
    assert quoted().samples == [1]
    daemon.submit("sweep")
    assert quoted().samples == [4], "bag 3 has used the sample"
    assert quoted().samples == [4]


def test_a_sample_of_which_all_has_failed_is_run_again(daemon: Daemon) -> None:
    daemon.fails = True
    for _ in range(2):
        with pytest.raises(AdaptorError, match="no task of the sample has finished"):
            quoted()
    daemon.fails = False
    assert quoted().samples == [3]
    assert quoted().samples == [3]


def test_a_bag_that_its_sample_would_finish_is_refused_before_anything_runs(daemon: Daemon) -> None:
    with pytest.raises(UsageError, match=r"needs more than 30 tasks, and the bag has 30: .*adaptor plan"):
        quoted(msgspec.structs.replace(BAG, tasks=BAG.tasks[:30]))
    assert daemon.bags == []
    assert len(quoted(msgspec.structs.replace(BAG, tasks=BAG.tasks[:31])).rest.tasks) == 1


LINE = Line(
    name="cheapest",
    budget=1.0,
    processors={"here": 1},
    seconds=Estimate(30.0, 60.0, 120.0),
    cost=Estimate(0.5, 1.0, 2.0),
)


def test_earlier_bags_that_tell_enough_stand_for_a_sample(daemon: Daemon) -> None:
    assert by_earlier_bags(BAG) is None, "nothing is known"
    told = ["40 earlier tasks of fit took 4m to 9m"]
    daemon.plan = SimpleNamespace(known=True, choices=[LINE], earlier=told)
    found = by_earlier_bags(BAG)
    assert found is not None
    assert (found.lines, found.rest, found.samples, found.earlier) == ([LINE], BAG, [], told)
    assert daemon.bags == [], "nothing has run"


def test_a_sample_that_is_paid_is_not_left_unused(daemon: Daemon) -> None:
    daemon.plan = SimpleNamespace(known=True, choices=[LINE], earlier=["told"])
    quoted()
    assert by_earlier_bags(BAG) is None
    daemon.submit("sweep")
    assert by_earlier_bags(BAG) is not None, "the sample was for bag 2"
