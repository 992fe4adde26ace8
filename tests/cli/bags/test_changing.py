"""`pause`, `resume` and `change`: which bags they mean, and what they say."""

from __future__ import annotations

import time

import pytest

from adaptor import api
from adaptor.guard_rails import MostFails
from adaptor.resources import OwnNeeds
from tests.cli.fake_control import bag_view
from tests.cli.invoking import Cli, Serve


@pytest.mark.parametrize(
    ("command", "question", "done", "otherwise"),
    [
        (["pause"], api.Pause, "paused", "paused already, or ended"),
        (["resume"], api.Resume, "resumed", "not paused"),
        (["change", "--priority", "-2"], api.ChangeOptions, "changed", "ended"),
    ],
)
def test_bags_are_steered(
    cli: Cli, serve: Serve, command: list[str], question: type, done: str, otherwise: str
) -> None:
    server = serve({api.GetBags: api.Bags([bag_view(3)]), question: [3]})
    assert cli(*command, "3").out == f"bag 3: {done}\n"
    server.answers[api.GetBags] = api.Bags([bag_view(3), bag_view(5)])
    assert cli(*command, "3-9").out == f"bag 3: {done}\nbag 5: {otherwise}\n"
    assert cli(*command, "3-9", "--json").value == {"bags": [3]}
    assert server.asked(question)[-1].bags == [3, 5]
    server.answers[question] = []
    outcome = cli(*command, "3-9")
    assert (outcome.code, outcome.err) == (2, f"adaptor: bags 3, 5: {otherwise}\n")


def test_what_is_changed(cli: Cli, serve: Serve) -> None:
    answers = {
        api.GetBags: api.Bags([bag_view(3)]),
        api.ChangeOptions: [3],
    }
    server = serve(answers)
    cli("change", "3", "--max-running", "0", "--retries", "2", "--max-fails", "5%")
    (asked,) = server.asked(api.ChangeOptions)
    assert asked == api.ChangeOptions([3], None, 0, 2, MostFails(share=0.05))
    cli(
        "change",
        "3",
        "--time",
        "20m",
        "--timeout",
        "300%",
        "--site",
        "a,b",
        "--notify",
        "me",
        "--deadline",
        "12h",
        "--budget",
        "7.5",
    )
    asked = server.asked(api.ChangeOptions)[-1]
    assert (asked.time, asked.sites, asked.notify) == (1200.0, ("a", "b"), ("me",))
    assert asked.deadline == pytest.approx(time.time() + 12 * 3600, abs=300)
    assert asked.budget == 7.5
    assert asked.timeout is not None
    cli("change", "3", "--mem", "8G", "--cpus", "2")
    assert server.asked(api.ChangeOptions)[-1].needs == OwnNeeds(cpus=2, memory=8 << 30)
    assert "--mem" in cli("change", "3", "--mem", "auto").err
    assert "nothing to change" in cli("change", "3").err
    assert "--max-fails" in cli("change", "3", "--max-fails", "0%").err
