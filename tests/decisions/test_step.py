"""The order of a step, and what its actions do, by answers that a test makes up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.situation import Demand, Reshape, SiteRules, Withdraw, Withhold
from adaptor.decisions.actions import Explain, GiveBack, GiveUp, SubmitRequest, Wake, WithholdNodes
from adaptor.decisions.decide import Decision
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.site_memory import SiteMemory, SiteSettings
from adaptor.decisions.step import (
    Answer,
    Ask,
    Cancel,
    PilotChanged,
    PilotNews,
    PilotsObserved,
    Question,
    Reply,
    Step,
    Steps,
)
from adaptor.model import CraftedRequest, Limits, PilotState, QueueState, Request
from adaptor.reports import JobReport, JobState
from adaptor.resources import TaskSize
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.state import SiteTerms

LIMITS = Limits(max_pending_requests=3, max_proc=8, max_tr=3600)
OTHER = 2
"""Processors of other tasks."""


class Driver:
    """Answers as told, and notes what it was asked."""

    def __init__(self, actions: Sequence[object] = (), *, limits_known: bool = True) -> None:
        settings = SiteSettings(name="here", rules=SiteRules(limits=LIMITS), heuristic="adaptive")
        self.site = SiteMemory(settings, 0.0, limits_known=limits_known)
        self.sites: Mapping[str, SiteMemory] = {"here": self.site}
        self.broker = Broker({"here": SiteTerms(initial_tr=60.0, growth_factor=2, longest=3600.0)})
        self.ledger, self.decided = Ledger(), Memory()
        self.asked: list[Question] = []
        self.news: list[PilotNews] | None = []
        self.answers: Callable[[Question], Answer] = lambda _question: Answer.TAKEN
        self._decision = Decision(tuple(actions), Memory(shares_problem="kept"))  # type: ignore[arg-type]

    def submit_bag(self) -> None:
        spec = BagSpec(name="b", cwd="/", output="/o", environment={})
        bag = Bag(1, spec, 10)
        bag.fill()
        self.broker.add_bag(bag, 0.0)

    def pilot(self, id: int = 1) -> Pilot:
        """Queued."""
        pilot = self.site.add_pilot(self.broker, id, f"tag{id}", submit(), 0.0)
        return self.site.submitted(pilot, f"job{id}")

    def run(self, steps: Steps | None = None) -> list[Question]:
        steps = steps or Step(self, self.site, 100.0).run()
        question = next(steps, None)
        while question is not None:
            self.asked.append(question)
            try:
                question = steps.send(self._reply(question))
            except StopIteration:
                break
        return self.asked

    def act(self) -> list[Question]:
        return self.run(Step(self, self.site, 100.0).act(self._decision.actions))

    def _reply(self, question: Question) -> Reply:
        return Reply(
            now=101.0,
            limits=LIMITS,
            pilots=self.news,
            queue=QueueState(now=101.0, processors=8),
            decision=self._decision,
            answer=self.answers(question),
        )


def submit(cpus: int = 1) -> SubmitRequest:
    crafted = CraftedRequest(Request(2, 600), None, 2, "asks")
    return SubmitRequest(
        crafted=crafted,
        demand=Demand(task=TaskSize(processors=cpus), waiting=2, runtime=60.0),
        payers={1: 1.0},
    )


def _always(answer: Answer, _question: Question) -> Answer:
    return answer


def ended(state: JobState = JobState.FAILED) -> JobReport:
    return JobReport(id="job1", tag="tag1", state=state, start=50.0, end=90.0)


def test_the_order_of_a_step() -> None:
    driver = Driver([Withhold("no")], limits_known=False)
    driver.submit_bag()
    driver.pilot()
    asked = driver.run()
    assert [question for question in asked if not isinstance(question, Explain)] == [
        Ask.LIMITS,
        Ask.PILOTS,
        PilotsObserved(()),
        Ask.QUEUE,
        Ask.DECISION,
        Withhold("no"),
    ]
    assert driver.site.limits_known
    assert driver.decided.shares_problem == "kept"


def test_a_site_without_work_asks_for_nothing() -> None:
    assert not Driver().run()


def test_the_queue_is_asked_for_while_tasks_wait_only() -> None:
    driver = Driver()
    driver.pilot()
    assert Ask.QUEUE not in driver.run()


def test_a_scheduler_that_does_not_answer_changes_no_pilot() -> None:
    driver = Driver()
    driver.pilot()
    driver.news = None
    assert not any(isinstance(question, PilotsObserved) for question in driver.run())
    assert driver.site.pilots[1].state is PilotState.QUEUED


def test_what_an_ended_pilot_wrote_says_why_it_failed() -> None:
    driver = Driver()
    driver.pilot()
    driver.news = [PilotNews(pilot=1, report=ended(), complaints="no route to the daemon", last_words="bye")]
    asked = driver.run()
    (changed,) = (question for question in asked if isinstance(question, PilotChanged))
    assert changed.pilot.end_reason == "no route to the daemon"
    assert not driver.site.pilots
    assert asked[1:4] == [changed, Wake("here"), PilotsObserved((1,))]


def test_what_is_unwanted_is_cancelled_before_a_request_is_sent_and_once() -> None:
    driver = Driver([Withdraw(1, "needless"), submit()])
    driver.pilot()
    asked = driver.act()
    assert asked == [Withdraw(1, "needless"), Cancel(("job1",)), Wake("here"), submit()]
    assert driver.site.pilots[1].cancel_sent == 100.0 + 1.0


def test_an_order_to_cancel_that_failed_is_repeated() -> None:
    driver = Driver([Withdraw(1, "needless"), submit()])
    driver.pilot()
    driver.answers = lambda question: Answer.NONE if isinstance(question, Cancel) else Answer.TAKEN
    assert driver.act().count(Cancel(("job1",))) == 2
    assert driver.site.pilots[1].cancel_sent is None


def test_after_a_refusal_no_other_request_for_such_tasks_is_sent_and_nothing_withheld() -> None:
    driver = Driver([submit(), submit(), submit(OTHER), Withhold("all is covered")])
    driver.answers = lambda question: Answer.REFUSED if question == submit() else Answer.TAKEN
    assert driver.act() == [submit(), submit(OTHER)]


def test_after_a_failure_of_the_scheduler_no_request_is_sent() -> None:
    driver = Driver([submit(), submit(OTHER)])
    driver.answers = lambda _question: Answer.NONE
    assert driver.act() == [submit()]
    assert not driver.site.submitting


def test_requests_that_are_not_sent_yet_are_remembered() -> None:
    driver = Driver([submit(), submit(OTHER)])
    driver.submit_bag()
    left: list[int] = []

    def answer(question: Question) -> Answer:
        if isinstance(question, SubmitRequest):
            left.append(len(driver.site.submitting))
        return Answer.TAKEN

    driver.answers = answer
    driver.run()
    assert left == [2, 1]


def test_a_change_that_is_refused_is_not_tried_again() -> None:
    for answer, fixed, tr in (
        (Answer.TAKEN, False, 1200),
        (Answer.REFUSED, True, 600),
        (Answer.NONE, False, 600),
    ):
        change = Reshape(1, CraftedRequest(Request(2, 1200), 5.0, 2, "longer"), submit().demand)
        driver = Driver([change])
        driver.pilot()
        driver.answers = partial(_always, answer)
        driver.act()
        pilot = driver.site.pilots[1]
        assert (pilot.fixed, pilot.request.tr) == (fixed, tr)


def test_tasks_that_are_given_up_are_told_of_and_all_sites_look_again() -> None:
    driver = Driver([GiveUp(1, "no node can run it")])
    driver.submit_bag()
    assert driver.act() == [
        GiveUp(1, "no node can run it"),
        Explain("problem", "bag 1: gave 10 tasks up: no node can run it"),
        Wake("here"),
    ]


def test_a_pilot_is_given_back_once_and_the_broker_knows_until_when() -> None:
    given = GiveBack(1, "the new plan does without it", 160.0)
    driver = Driver([given, given])
    driver.pilot()
    assert driver.act() == [given]
    assert driver.site.pilots[1].given_back == driver.broker.state.until[1] == 160.0
    driver.broker.forget_pilot(1)
    assert driver.broker.state.until == {}
    assert Driver([given]).act() == [], "it has left"


def test_a_site_that_donates_no_nodes_withholds_none() -> None:
    assert not Driver([WithholdNodes("reserved")]).act()
