"""`adaptor quote`: what is at fault is said before a sample is paid for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor import api
from adaptor.bag_spec import BagSpec
from adaptor.budget.provisioning.menu_line import Line
from adaptor.cli.bags.quote import by_line
from adaptor.cli.bags.sampling import QuotedBag
from adaptor.model import Estimate
from tests.cli.invoking import Cli

SAMPLING = "adaptor.cli.bags.sampling"
SPEC = BagSpec(name="sweep", cwd="/", output="/o", environment={})


@pytest.fixture(autouse=True)
def nothing_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a daemon was wanted")

    monkeypatch.setattr("adaptor.cli.bags.quote.ensure_daemon", never)
    monkeypatch.chdir(tmp_path)
    Path("tasks.bag").write_text("true\n" * 20)


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is bag 3."""
    monkeypatch.setattr("adaptor.cli.bags.quote.ensure_daemon", lambda *_, **__: False)
    monkeypatch.setattr(f"{SAMPLING}.take_samples", lambda bag: QuotedBag([], bag, [1, 2]))
    monkeypatch.setattr("adaptor.cli.bags.quote._go_on", lambda *_: 3)


@pytest.mark.parametrize("words", [(), ("--sample",)])
def test_what_is_submitted_names_the_sample_that_belongs_to_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, submitted: None, words: tuple[str, ...]
) -> None:
    known = QuotedBag([], api.BagInput(spec=SPEC, tasks=[]), [], ["40 earlier tasks of fit took 4m"])
    monkeypatch.setattr(f"{SAMPLING}.by_earlier_bags", lambda _: known if words else None)
    assert cli("quote", "tasks.bag", "--choose", "1", *words).lines[-2:] == [
        "bag 3: 20 tasks",
        "with the sample these are all tasks: adaptor results 1,2,3",
    ]


def test_earlier_bags_are_told_and_there_is_no_sample_to_name(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, submitted: None
) -> None:
    told = ["40 earlier tasks of true took 4m to 9m"]
    monkeypatch.setattr(f"{SAMPLING}.by_earlier_bags", lambda bag: QuotedBag([], bag, [], told))
    lines = cli("quote", "tasks.bag", "--choose", "1").lines
    assert lines[:2] == [*told, "20 tasks without a sample; ranges of 90 % probability"]
    assert lines[-1] == "bag 3: 20 tasks"


def test_the_rest_keeps_to_the_sites_slots_time_and_credits_of_its_line() -> None:
    line = Line(
        name="fastest",
        budget=2.0,
        processors={"near": 2, "far": 3},
        seconds=Estimate(80.0, 100.0, 120.0),
        cost=Estimate(1.0, 1.5, 2.5),
        reserved=0.5,
    )
    bag = api.BagInput(spec=SPEC, tasks=[])
    chosen = by_line(bag, line, now=1000.0)
    assert chosen.budget == 3.0
    assert (chosen.spec.sites, chosen.spec.max_running) == (("near", "far"), 5)
    assert (chosen.spec.deadline, chosen.spec.prefer) == (1120.0, "fast")
    cheapest = by_line(bag, msgspec.structs.replace(line, name="cheapest"), now=1000.0)
    assert cheapest.spec.prefer is None
    fewer = api.BagInput(spec=msgspec.structs.replace(SPEC, max_running=4, prefer="balanced"), tasks=[])
    assert (by_line(fewer, line, 0.0).spec.max_running, by_line(fewer, line, 0.0).spec.prefer) == (
        4,
        "balanced",
    )
