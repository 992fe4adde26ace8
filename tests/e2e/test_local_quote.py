"""A quote on two local sites, and a run on the chosen line."""

from __future__ import annotations

from tests.e2e.lab import Lab, exactly_one_result_each, keys_of, sites
from tests.e2e.test_local_budget import never_above_budget

SHORT = {"initial_tr": 4, "pad": 3, "idle_timeout": 2, "overrun": 2}
SITES = sites(
    {
        "near": keys_of("local", (2, 2, "5m"), processors=2, price={"explicit": 10}, **SHORT),
        "far": keys_of("local", (2, 3, "5m"), processors=3, price={"explicit": 100}, **SHORT),
    }
)
TASKS = 60


def test_the_menu_of_two_sites_and_its_cheapest_line(lab: Lab) -> None:
    lab.configure(SITES)
    lab.bag(["sleep 0.3"] * TASKS)
    lab.run("daemon", "start")
    looked = lab.ask("quote", "tasks.bag")
    told = lab.ask("quote", "tasks.bag", "--choose", "1")
    assert told["samples"] == looked["samples"] == [1, 2], "paid once"
    assert told["bag"] == 3
    lines = told["lines"]
    assert [line["name"] for line in lines][::5] == ["cheapest", "fastest"]
    costs = [line["cost"]["value"] for line in lines]
    times = [line["seconds"]["value"] for line in lines]
    assert costs == sorted(costs)
    assert times == sorted(times, reverse=True)
    assert "far" not in lines[0]["processors"], "far is dearer and no faster"
    rest = lab.status(told["bag"])
    assert rest["tasks"] == TASKS - 30
    lab.wait(told["bag"])
    exactly_one_result_each(lab, told["bag"], TASKS - 30)
    used = {pilot["site"] for pilot in lab.ask("report", str(told["bag"]))["requests"]}
    assert used == {"near"}
    assert lab.ask("quote", "tasks.bag")["samples"] == [4, 5], "those of the next run"
    refused = lab.run("quote", "tasks.bag", "--site", "elsewhere", expect=2).stderr
    assert "there is no site" in refused
    lab.run("daemon", "stop", "--pilots")
    never_above_budget(lab.state / "journal.sqlite")
