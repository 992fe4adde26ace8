"""Equal pilots are one submission: what a step asks for them, and what becomes of a part of them."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.crafting.situation import SubmitRequest, Withdraw, Withhold
from adaptor.decisions.actions import Remark
from adaptor.decisions.questions import (
    Answer,
    Cancel,
    Intend,
    LeftBehind,
    PilotNews,
    PilotsChanged,
    Question,
    Submit,
)
from adaptor.decisions.step import Step
from adaptor.model import PilotState, Request
from adaptor.reports import JobReport, JobState
from tests.decisions.test_step import OTHER, Driver, submit


def array(pilots: int) -> list[SubmitRequest]:
    return [submit() for _ in range(pilots)]


def driver_of(*actions: object, most: int = 1000) -> Driver:
    driver = Driver(actions)
    driver.site.rules = msgspec.structs.replace(driver.site.rules, most_in_array=most)
    return driver


def sizes(driver: Driver) -> list[int]:
    """Of the submissions."""
    return [len(asked.pilots) for asked in driver.submitted]


def takes(most: int, driver: Driver) -> None:
    """The scheduler takes as many pilots and no more."""

    def answer(question: Question) -> Answer:
        there = sum(pilot.job is not None for pilot in driver.site.pilots.values())
        beyond = isinstance(question, Submit) and there + len(question.pilots) > most
        return Answer.REFUSED if beyond else Answer.TAKEN

    driver.answers = answer


def test_equal_pilots_are_one_intent_and_one_submission() -> None:
    driver = driver_of(*array(40))
    driver.act()
    assert [asked for asked in driver.asked if isinstance(asked, Intend)] == [
        Intend(tuple(array(40)), Request(2, 600))
    ]
    assert sizes(driver) == [40]
    pilots = list(driver.site.pilots.values())
    assert [(pilot.id, pilot.job, pilot.array) for pilot in pilots] == [
        (id, f"job{id}", 1) for id in range(1, 41)
    ]
    assert {pilot.state for pilot in pilots} == {PilotState.QUEUED}
    assert PilotsChanged(tuple(pilots)) in driver.asked
    assert driver.told == [("issued", "40 pilots of 2 × 10m: asks", 1)]
    assert not driver.site.submitting


def test_a_pilot_alone_is_no_array() -> None:
    driver = driver_of(submit(), submit(OTHER), submit())
    driver.act()
    assert sizes(driver) == [1, 1, 1]
    assert {pilot.array for pilot in driver.site.pilots.values()} == {None}


@pytest.mark.parametrize("between", [Withdraw(9, "needless"), submit(OTHER)], ids=["other action", "request"])
def test_only_neighbours_are_together(between: object) -> None:
    driver = driver_of(*array(2), between, *array(3))
    driver.act()
    assert [size for size in sizes(driver) if size > 1] == [2, 3]


def test_pilots_that_others_pay_for_are_not_together() -> None:
    mine = submit()
    others = msgspec.structs.replace(mine.demand, payers={2: 1.0})
    theirs = msgspec.structs.replace(mine, demand=others)
    driver = driver_of(mine, mine, theirs)
    driver.act()
    assert sizes(driver) == [2, 1]


def test_an_array_counts_as_one_submission_of_the_hour() -> None:
    driver = Driver(array(40))
    rules = msgspec.structs.replace(driver.site.rules, max_submissions=10, most_in_array=1000)
    settings = msgspec.structs.replace(driver.site.settings, rules=rules)
    driver.site = type(driver.site)(settings, 0.0)
    driver.sites = {"here": driver.site}
    driver.submit_bag()
    driver.site.submits([*array(40), submit(OTHER)])
    assert driver.site.facts({}, 100.0, 0.0).submissions.left == 8
    driver.site.rules = msgspec.structs.replace(rules, most_in_array=16)
    assert driver.site.facts({}, 100.0, 0.0).submissions.left == 6
    driver.site.rules = rules
    driver.site.submits(())
    driver.act()
    assert driver.site.facts({}, 100.0, 0.0).submissions.left == 9


@pytest.mark.parametrize("most", [1, 7])
def test_more_than_an_array_may_hold_are_several_submissions(most: int) -> None:
    driver = driver_of(*array(20), most=most)
    driver.act()
    assert sizes(driver) == ([1] * 20 if most == 1 else [7, 7, 6])
    assert len({pilot.array for pilot in driver.site.pilots.values()}) == (1 if most == 1 else 3)
    assert len(driver.told) == len(sizes(driver))


def test_where_budgets_hold_a_part_of_an_array_that_part_is_submitted() -> None:
    driver = driver_of(*array(40))
    driver.over_budget, driver.held = "0 credits are left", 25
    driver.act()
    assert Withhold("0 credits are left", submit().demand) in driver.asked
    assert sizes(driver) == [25]
    assert len(driver.site.pilots) == 25
    assert driver.told == [("issued", "25 pilots of 2 × 10m: asks", 1)]


@pytest.mark.parametrize("most", [1, 2, 17, 20, 39])
def test_where_the_scheduler_takes_fewer_the_rest_is_refused_with_its_reason(most: int) -> None:
    driver = driver_of(*array(40))
    takes(most, driver)
    driver.act()
    assert len(driver.site.pilots) == most
    assert len(driver.submitted) <= 14
    refused = [
        pilot.id
        for asked in driver.asked
        if isinstance(asked, PilotsChanged)
        for pilot in asked.pilots
        if pilot.state is PilotState.REFUSED
    ]
    assert refused == list(range(most + 1, 41))
    issued = "asks" if most == 1 else f"{most} pilots of 2 × 10m: asks"
    left = "said so" if most == 39 else f"{40 - most} pilots: said so"
    assert driver.told == [("issued", issued, 1), ("refused", left, most + 1)]


def test_of_an_array_that_the_scheduler_refuses_whatever_its_size_one_more_pilot_is_tried() -> None:
    driver = driver_of(*array(500), submit(OTHER))
    takes(0, driver)
    driver.act()
    assert sizes(driver) == [500, 1, 1]
    assert not driver.site.pilots
    assert driver.told[0] == ("refused", "500 pilots: said so", 1)


def test_a_scheduler_that_takes_no_arrays_at_all_gets_one_pilot_after_the_other() -> None:
    driver = driver_of(*array(9))
    driver.answers = lambda question: (
        Answer.REFUSED if isinstance(question, Submit) and len(question.pilots) > 1 else Answer.TAKEN
    )
    driver.act()
    assert len(driver.site.pilots) == 9


def test_the_whole_array_may_have_been_taken_where_that_is_not_known() -> None:
    driver = driver_of(*array(40), submit(OTHER))
    driver.answers = lambda question: Answer.UNCERTAIN if isinstance(question, Submit) else Answer.TAKEN
    driver.act()
    assert sizes(driver) == [40]
    assert {pilot.state for pilot in driver.site.pilots.values()} == {PilotState.SUBMITTING}
    assert len(driver.site.pilots) == 40
    assert driver.told == [("problem", "whether the scheduler has it is not yet known: said so", 1)]


def test_what_was_not_sent_before_an_uncertain_answer_is_certainly_not_there() -> None:
    driver = driver_of(*array(20))
    answers = iter([Answer.REFUSED, Answer.TAKEN, Answer.UNCERTAIN])
    driver.answers = lambda question: next(answers) if isinstance(question, Submit) else Answer.TAKEN
    driver.act()
    states = [pilot.state for pilot in driver.site.pilots.values()]
    assert states == [PilotState.QUEUED] + [PilotState.SUBMITTING] * 10


def test_after_a_failure_nothing_of_an_array_stays() -> None:
    driver = driver_of(*array(40))
    driver.answers = lambda question: Answer.FAILED if isinstance(question, Submit) else Answer.TAKEN
    driver.act()
    assert not driver.site.pilots
    assert driver.told == [("problem", "40 pilots: said so", 1)]


def test_pilots_that_are_withdrawn_for_one_reason_are_one_line() -> None:
    driver = driver_of(Withdraw(1, "needless"), Withdraw(2, "needless"), Withdraw(4, "needless"))
    for id in (1, 2, 4):
        driver.pilot(id)
    driver.act()
    assert driver.told == [("withdrawn", "3 pilots (1-2,4): needless", 1)]
    (cancel,) = (asked for asked in driver.asked if isinstance(asked, Cancel))
    assert [job.id for job in cancel.jobs] == ["job1", "job2", "job4"]


def test_what_is_wrong_with_many_pilots_is_one_line() -> None:
    driver = driver_of(
        *(Remark(id, "no worker has called") for id in (1, 2, 3)), Remark(4, "its node is slow")
    )
    for id in (1, 2, 3, 4):
        driver.pilot(id)
    driver.act()
    assert driver.told == [
        ("problem", "3 pilots (1-3): no worker has called", 1),
        ("problem", "its node is slow", 4),
    ]
    assert {pilot.note for pilot in driver.site.pilots.values()} == {
        "no worker has called",
        "its node is slow",
    }


def test_pilots_of_an_array_that_end_in_one_way_are_one_line() -> None:
    driver = driver_of(*array(40))
    driver.submit_bag()
    driver.act()
    driver.asked.clear()

    def news(pilot: int, state: JobState, start: float, end: float) -> PilotNews:
        ended = {"start": start, "end": end}
        return PilotNews(
            pilot=pilot,
            report=JobReport(id=f"job{pilot}", tag="tag", state=state, **ended),
            left=LeftBehind(),
        )

    driver.news = [
        *(news(id, JobState.COMPLETED, 10.0, 70.0 + id) for id in range(1, 31)),
        news(31, JobState.FAILED, 10.0, 20.0),
    ]
    driver.run(Step(driver, driver.site, 100.0).observe_pilots())
    assert driver.told == [
        ("ended", "30 pilots (1-30) are completed after 1m 1s to 1m 30s", 1),
        ("ended", "failed after 10s", 31),
    ]
    assert len(driver.site.pilots) == 9
