"""The order of a step, and what its actions do, by answers that a test makes up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
import pytest

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.situation import Demand, Reshape, SiteRules, SubmitRequest, Withdraw, Withhold
from adaptor.crafting.submissions import Submissions
from adaptor.decisions.actions import Explain, GiveUp, Prolong, Wake, WithholdNodes
from adaptor.decisions.decide import Decision
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import Arrival, Pilot
from adaptor.decisions.questions import (
    Answer,
    Ask,
    Cancel,
    Commit,
    Intend,
    IntendChange,
    LeftBehind,
    PilotChanged,
    PilotNews,
    PilotsChanged,
    PilotsEnded,
    Question,
    Reply,
    RequestChanged,
    Steps,
    Submit,
    Together,
)
from adaptor.decisions.site_memory import SiteMemory
from adaptor.decisions.site_settings import DonationSettings, SiteSettings
from adaptor.decisions.step import LONGEST, Step
from adaptor.donation.situation import DonationRules
from adaptor.model import Allowed, CraftedRequest, Limits, PilotState, QueueState, Request
from adaptor.protocol.messages import Hello
from adaptor.reports import JobReport, JobState, OwnJob, Remedy
from adaptor.resources import TaskSize
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.state import SiteTerms
from adaptor.scheduling.task_needs import TaskNeeds

LIMITS = Limits(max_pending_requests=3, max_proc=8, max_tr=3600)
OTHER = 2
"""Processors of other tasks."""


class Driver:
    """Answers as told, and notes what it was asked."""

    def __init__(
        self, actions: Sequence[object] = (), *, limits_known: bool = True, donates: bool | None = None
    ) -> None:
        """`donates`: whether the scheduler preempts what it donates; None: it donates no nodes."""
        donation = DonationSettings(rules=DonationRules(), preemptible=bool(donates))
        settings = SiteSettings(
            name="here",
            rules=SiteRules(limits=LIMITS),
            heuristic="adaptive",
            donation=None if donates is None else donation,
        )
        self.site = SiteMemory(settings, 0.0, limits_known=limits_known)
        self.sites: Mapping[str, SiteMemory] = {"here": self.site}
        self.broker = Broker({"here": SiteTerms(initial_tr=60.0, growth_factor=2, longest=3600.0)})
        self.ledger, self.decided = Ledger(), Memory()
        self.asked: list[Question] = []
        self.news: list[PilotNews] | None = []
        self.strays: list[OwnJob] = []
        self.over_budget = ""
        self.held = 0
        """Pilots that budgets hold nevertheless."""
        self.remedy = Remedy.OTHER
        self.queue = QueueState(now=101.0, processors=8)
        self.now = 100.0
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

    def reserve(self, pilot: Pilot, tr: int = 600) -> None:
        self.ledger.set_price("here", Tariff(price_explicit=1.0, price_donated=1.0), 0.0)
        self.ledger.reserve(pilot.id, "here", Request(pilot.request.p, tr), "explicit", {1: 1.0}, 0.0)

    def run(self, steps: Steps | None = None) -> list[Question]:
        steps = steps or Step(self, self.site, self.now).run()
        question = next(steps, None)
        while question is not None:
            self.asked.append(question)
            try:
                question = steps.send(self._reply(question))
            except StopIteration:
                break
        return self.asked

    def act(self) -> list[Question]:
        return self.run(Step(self, self.site, self.now).act(self._decision.actions))

    @property
    def submitted(self) -> list[Submit]:
        return [question for question in self.asked if isinstance(question, Submit)]

    @property
    def told(self) -> list[tuple[str, str, int | None]]:
        return [(each.kind, each.text, each.pilot) for each in self.asked if isinstance(each, Explain)]

    def _reply(self, question: Question) -> Reply:
        if isinstance(question, Together):
            for steps in question.steps:
                self.run(steps)
        intends = isinstance(question, Intend | IntendChange | Prolong)
        return Reply(
            now=self.now,
            strays=self.strays,
            pilot=1 + max(self.site.pilots, default=0),
            tags=self._tags(question) if intends else (),
            jobs=tuple(f"job{pilot.id}" for pilot in question.pilots) if isinstance(question, Submit) else (),
            problem=self.over_budget if intends else "said so",
            limits=LIMITS,
            pilots=self.news,
            queue=self.queue,
            decision=self._decision,
            answer=self.answers(question),
            remedy=self.remedy,
        )

    def _tags(self, question: Question) -> tuple[str, ...]:
        """Of the pilots that the budgets hold."""
        wanted = len(question.submits) if isinstance(question, Intend) else 0
        return ("tag",) * min(wanted, self.held if self.over_budget else wanted)


def submit(cpus: int = 1) -> SubmitRequest:
    crafted = CraftedRequest(Request(2, 600), None, 2, "asks")
    return SubmitRequest(
        crafted=crafted,
        demand=Demand(task=TaskSize(processors=cpus), waiting=2, runtime=60.0, payers={1: 1.0}),
    )


def _always(answer: Answer, _question: Question) -> Answer:
    return answer


def hello_of(pilot: Pilot) -> Hello:
    return Hello(
        pilot=pilot.id, node="n", pid=1, version="test", processors=2, memory=1 << 30, deadline=10_000.0
    )


def ended(state: JobState = JobState.FAILED) -> JobReport:
    return JobReport(id="job1", tag="tag1", state=state, start=50.0, end=90.0)


@pytest.mark.parametrize("partitions", [{}, {"long": 600.0, "short": 120.0}])
def test_tasks_of_unknown_runtime_start_in_requests_as_short_as_the_scheduler_allows(
    partitions: dict[str, float],
) -> None:
    """Where it allows ten minutes, no task can be waited for that is supposed to take an hour."""
    driver = Driver()
    driver.submit_bag()

    def queue(longest: float, **partitions: QueueState) -> QueueState:
        allowed = Allowed(max_tr=longest)
        return QueueState(now=101.0, processors=8, allowed=allowed, partitions=partitions)

    driver.queue = queue(600.0, **{name: queue(longest) for name, longest in partitions.items()})
    driver.broker.state.set_longest("here", 36_000.0)
    driver.run()
    bag = driver.broker.state.bags[1]
    assert driver.broker.state.sites["here"].longest == 600.0 - driver.site.rules.pad
    assert TaskNeeds(driver.broker.state, bag, "here", bag.lines.of(1)).whole(1) <= 600.0
    driver.queue = QueueState(now=101.0, processors=8)
    driver.run()
    assert driver.broker.state.sites["here"].longest == 3600.0 - driver.site.rules.pad


def test_the_order_of_a_step() -> None:
    driver = Driver([Withhold("no")], limits_known=False)
    driver.submit_bag()
    driver.pilot()
    asked = driver.run()
    assert [question for question in asked if not isinstance(question, Explain)] == [
        Ask.LIMITS,
        Ask.PILOTS,
        Commit(),
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
    assert Commit() not in driver.run()
    assert driver.site.pilots[1].state is PilotState.QUEUED


def test_what_an_ended_pilot_wrote_says_why_it_failed() -> None:
    driver = Driver()
    driver.pilot()
    left = LeftBehind(complaints="no route to the daemon", last_words="bye")
    driver.news = [PilotNews(pilot=1, report=ended(), left=left)]
    asked = driver.run()
    (changed,) = (question for question in asked if isinstance(question, PilotChanged))
    assert changed.pilot.end_reason == "no route to the daemon"
    assert not driver.site.pilots
    told = Explain("ended", "failed after 40s: no route to the daemon", 1)
    assert asked[1:6] == [changed, told, Wake("here"), Commit(), PilotsEnded((1,))]


@pytest.mark.parametrize(
    ("called", "told"), [(False, "no module adaptor; does python3 start?"), (True, "no module adaptor")]
)
def test_a_pilot_that_failed_without_a_worker_is_told_with_the_way_out(called: bool, told: str) -> None:
    driver = Driver()
    pilot = driver.pilot()
    if called:
        driver.site.change(pilot, first_hello=101.0)
    left = LeftBehind(last_words="no module adaptor", way_out="does python3 start?")
    driver.news = [PilotNews(pilot=1, report=ended(), left=left)]
    (changed,) = (question for question in driver.run() if isinstance(question, PilotChanged))
    assert changed.pilot.end_reason == told


def test_jobs_of_no_pilot_are_cancelled_and_told_of() -> None:
    driver = Driver()
    driver.pilot()
    driver.strays = [OwnJob("job7", "tag7"), OwnJob("job8", "tag8")]
    driver.run()
    assert Cancel((OwnJob("job7", "tag7"), OwnJob("job8", "tag8"))) in driver.asked
    told = "cancelled job job7, job8, which has a tag of this site and is no pilot any more"
    assert driver.told == [("problem", told, None)]


def test_what_the_scheduler_has_of_a_request_counts() -> None:
    driver = Driver()
    pilot = driver.pilot()
    driver.reserve(pilot)
    queued = JobReport(id="job1", tag="tag1", state=JobState.QUEUED, limit=900.0)
    driver.news = [PilotNews(pilot=1, report=queued)]
    (changed,) = (question for question in driver.run() if isinstance(question, RequestChanged))
    assert changed.pilot.request == driver.site.pilots[1].request == Request(2, 900)
    assert changed.reason is None
    assert driver.told == [("state", "the scheduler has it as 2 × 15m, no longer as 2 × 10m", 1)]


def test_a_reservation_for_a_change_that_never_came_is_given_back() -> None:
    driver = Driver()
    driver.reserve(driver.pilot(), tr=1200)
    queued = JobReport(id="job1", tag="tag1", state=JobState.QUEUED, limit=600.0)
    driver.news = [PilotNews(pilot=1, report=queued)]
    assert RequestChanged(driver.site.pilots[1], Request(2, 600)) in driver.run()
    assert not driver.told


def test_what_is_unwanted_is_cancelled_before_a_request_is_sent_and_once() -> None:
    driver = Driver([Withdraw(1, "needless"), submit()])
    driver.pilot()
    asked = driver.act()
    assert asked[:4] == [
        Explain("withdrawn", "needless", 1),
        Cancel((OwnJob("job1", "tag1"),)),
        Wake("here"),
        Intend((submit(),), Request(2, 600)),
    ]
    assert driver.site.pilots[1].cancel_sent == 100.0


def test_an_order_to_cancel_that_failed_is_repeated() -> None:
    driver = Driver([Withdraw(1, "needless"), submit()])
    driver.pilot()
    driver.answers = lambda question: Answer.FAILED if isinstance(question, Cancel) else Answer.TAKEN
    assert driver.act().count(Cancel((OwnJob("job1", "tag1"),))) == 2
    assert driver.site.pilots[1].cancel_sent is None


def test_what_the_scheduler_cannot_end_ends_when_its_workers_leave() -> None:
    driver = Driver()
    pilot = driver.site.change(driver.pilot(), job=None, leaving="outdated")
    driver.broker.hello("w", hello_of(pilot), "here", 100.0)
    driver.run(Step(driver, driver.site, 100.0).cancel_unwanted())
    assert driver.asked == [Commit()]
    assert driver.broker.state.orders["w"].leave == "outdated"


def test_a_request_that_is_taken_is_a_pilot() -> None:
    driver = Driver([submit()])
    driver.act()
    pilot = driver.site.pilots[1]
    assert (pilot.tag, pilot.job, pilot.state) == ("tag", "job1", PilotState.QUEUED)
    (asked,) = driver.submitted
    assert asked.pilots[0].state is PilotState.SUBMITTING
    assert driver.asked == [
        Intend((submit(),), Request(2, 600)),
        asked,
        PilotsChanged((pilot,)),
        Explain("issued", "asks", 1, (1,)),
    ]


@pytest.mark.parametrize(
    ("answer", "kind"), [(Answer.REFUSED, "refused"), (Answer.FAILED, "problem")], ids=["refused", "failed"]
)
def test_what_the_scheduler_has_not_taken_is_no_pilot(answer: Answer, kind: str) -> None:
    driver = Driver([submit()])
    driver.answers = partial(_always, answer)
    driver.act()
    assert not driver.site.pilots
    (changed,) = (question for question in driver.asked if isinstance(question, PilotsChanged))
    (pilot,) = changed.pilots
    assert (pilot.state, pilot.end_reason) == (PilotState.REFUSED, "said so")
    assert driver.told == [(kind, "said so", 1)]


def test_what_the_scheduler_may_have_taken_stays() -> None:
    driver = Driver([submit()])
    driver.answers = partial(_always, Answer.UNCERTAIN)
    driver.act()
    assert driver.site.pilots[1].state is PilotState.SUBMITTING
    assert driver.told == [("problem", "whether the scheduler has it is not yet known: said so", 1)]


def test_what_a_budget_does_not_hold_is_not_submitted() -> None:
    driver = Driver([submit(), submit()])
    driver.over_budget = "0 credits are left"
    assert driver.act() == [
        Intend((submit(),), Request(2, 600)),
        Withhold("0 credits are left", submit().demand),
    ]


def test_after_a_refusal_no_other_request_for_such_tasks_is_sent_and_nothing_withheld() -> None:
    driver = Driver([submit(), submit(), submit(OTHER), Withhold("all is covered")])

    def answer(question: Question) -> Answer:
        refused = isinstance(question, Submit) and question.demand == submit().demand
        return Answer.REFUSED if refused else Answer.TAKEN

    driver.answers = answer
    driver.act()
    assert [each.demand for each in driver.submitted] == [submit().demand, submit(OTHER).demand]
    assert Withhold("all is covered") not in driver.asked


@pytest.mark.parametrize("answer", [Answer.FAILED, Answer.UNCERTAIN])
def test_after_a_failure_of_the_scheduler_no_request_is_sent(answer: Answer) -> None:
    driver = Driver([submit(), submit(OTHER)])
    driver.answers = partial(_always, answer)
    driver.act()
    assert len(driver.submitted) == 1
    assert not driver.site.submitting


@pytest.mark.parametrize(("preemptible", "tried"), [(True, 1), (False, 3)], ids=["scheduler", "agents"])
def test_a_scheduler_that_fails_for_one_node_is_not_asked_for_the_others(
    preemptible: bool, tried: int
) -> None:
    nodes = [msgspec.structs.replace(submit(), node=f"n{number}") for number in range(3)]
    driver = Driver([*nodes, WithholdNodes("reserved")], donates=preemptible)
    driver.answers = partial(_always, Answer.FAILED)
    driver.act()
    assert len(driver.submitted) == tried
    assert WithholdNodes(f"n{tried - 1} could not be used: said so") in driver.asked
    assert not driver.site.submitting


def test_no_node_is_used_by_an_old_look() -> None:
    nodes = [msgspec.structs.replace(submit(), node=f"n{number}") for number in range(3)]
    driver = Driver(nodes, donates=True)

    def answer(question: Question) -> Answer:
        if isinstance(question, Submit):
            driver.now += LONGEST
        return Answer.TAKEN

    driver.answers = answer
    driver.act()
    assert [each.pilots[0].node for each in driver.submitted] == ["n0"]
    assert driver.asked.count(Wake("here")) == 1


def test_requests_that_are_not_sent_yet_are_remembered() -> None:
    driver = Driver([submit(), submit(OTHER)])
    driver.submit_bag()
    left: list[int] = []

    def answer(question: Question) -> Answer:
        if isinstance(question, Intend):
            left.append(len(driver.site.submitting))
        return Answer.TAKEN

    driver.answers = answer
    driver.run()
    assert left == [2, 1]


def test_a_change_that_is_refused_is_not_tried_again() -> None:
    for answer, fixed, tr in (
        (Answer.TAKEN, False, 1200),
        (Answer.REFUSED, True, 600),
        (Answer.UNCERTAIN, False, 600),
    ):
        change = Reshape(1, CraftedRequest(Request(2, 1200), 5.0, 2, "longer"), submit().demand)
        driver = Driver([change])
        driver.pilot()
        driver.answers = partial(_always, answer)
        driver.act()
        pilot = driver.site.pilots[1]
        assert (pilot.fixed, pilot.request.tr) == (fixed, tr)
        kept = RequestChanged(pilot, Request(2, 1200), "longer") in driver.asked
        assert kept == (("reshaped", "longer", 1) in driver.told) == (answer is Answer.TAKEN)


def test_a_change_that_a_budget_does_not_hold_is_not_asked_for() -> None:
    change = Reshape(1, CraftedRequest(Request(2, 1200), 5.0, 2, "longer"), submit().demand)
    driver = Driver([change])
    driver.pilot()
    driver.over_budget = "0 credits are left"
    assert driver.act() == [
        IntendChange(change, Request(2, 1200)),
        Withhold("0 credits are left", change.demand),
    ]


def running_with_paid(driver: Driver, paid: int) -> Pilot:
    """A pilot of bag 1 that runs, of whose 600 s only a part is paid for."""
    driver.submit_bag()
    driver.broker.own_pilot(1, 1)
    pilot = driver.pilot()
    driver.ledger.set_price("here", Tariff(price_explicit=1.0, price_donated=1.0), 0.0)
    driver.ledger.reserve(1, "here", pilot.request, "explicit", {1: 1.0}, 0.0, paid=paid)
    pilot = driver.site.keep(pilot.heard(90.0, "n", Arrival(2)))
    driver.site.meter(driver.broker, pilot, driver.ledger)
    assert driver.broker.state.meters[1].unpaid == 600.0 - paid
    return pilot


def test_more_time_is_paid_for_before_workers_are_told() -> None:
    driver = Driver([Prolong(1, 500)])
    running_with_paid(driver, 300)
    driver.ledger.prolong(1, 500, 100.0)  # as the driver does when it is asked
    assert driver.act() == [Prolong(1, 500), Commit()]
    assert driver.broker.state.meters[1].unpaid == 100.0


def test_time_that_another_site_has_spent_is_not_paid_for() -> None:
    driver = Driver([Prolong(1, 500)])
    running_with_paid(driver, 300)
    driver.over_budget = "0 credits are left"
    assert driver.act() == [Prolong(1, 500)]
    assert driver.broker.state.meters[1].unpaid == 300.0


@pytest.mark.parametrize(("limit", "unpaid"), [(600.0, 300.0), (200.0, 0.0), (900.0, 600.0)])
def test_what_is_paid_for_stays_whatever_the_scheduler_says_of_the_walltime(
    limit: float, unpaid: float
) -> None:
    driver = Driver()
    running_with_paid(driver, 300)
    report = JobReport(
        id="job1", tag="tag1", state=JobState.RUNNING, start=50.0, end=None, limit=limit, granted=limit
    )
    driver.news = [PilotNews(pilot=1, report=report)]
    for changed in driver.run():
        if isinstance(changed, RequestChanged):
            driver.ledger.change(1, changed.asked, 100.0, within=False)
    driver.site.meter(driver.broker, driver.site.pilots[1], driver.ledger)
    assert driver.broker.state.meters[1].unpaid == unpaid
    assert driver.ledger.open_pilots[1].paid == (300 if unpaid else None)


def test_tasks_that_are_given_up_are_told_of_and_all_sites_look_again() -> None:
    driver = Driver([GiveUp(1, "no node can run it")])
    driver.submit_bag()
    assert driver.act() == [
        Commit(),
        Explain("problem", "gave 10 tasks up: no node can run it", bags=(1,)),
        Wake("here"),
    ]


def test_a_site_that_donates_no_nodes_withholds_none() -> None:
    assert not Driver([WithholdNodes("reserved")]).act()


def test_a_pilot_that_was_moved_to_another_partition_is_told_of_and_counts_there() -> None:
    driver = Driver()
    limits = msgspec.structs.replace(
        driver.site.limits, partitions={"a": driver.site.limits, "b": driver.site.limits}
    )
    driver.site.know_limits(limits)
    pilot = driver.pilot()
    driver.site.change(pilot, partition="a")
    for partition, told, counts in (
        ("a", [], "a"),
        ("b", ["the scheduler has it in partition b, no longer in a"], "b"),
        ("b", [], "b"),
        ("", [], "b"),
        ("c", ["the scheduler has it in partition c, no longer in b"], "b"),
    ):
        queued = JobReport(id="job1", tag="tag1", state=JobState.QUEUED, limit=600.0, partition=partition)
        driver.news = [PilotNews(pilot=1, report=queued)]
        driver.asked.clear()
        asked = driver.run()
        assert [each.text for each in asked if isinstance(each, Explain) and "partition" in each.text] == told
        assert driver.site.pilots[1].partition == counts


def test_a_refused_size_is_learned_and_a_smaller_request_is_made_at_once() -> None:
    driver = Driver([submit()])
    driver.answers = partial(_always, Answer.REFUSED)
    driver.remedy = Remedy.NARROWER
    driver.act()
    assert Wake("here") in driver.asked
    (tried,) = driver.site.sizes.at(100.0).values()
    assert tried.why_impossible(Request(2, 600)) == "said so"
    assert "said so); a smaller one is tried" in driver.site.why_failed(submit().demand.shape, 100.0)
    driver.site.know_limits(msgspec.structs.replace(LIMITS, max_proc=4))
    assert driver.site.sizes.at(100.0) == {}


def test_what_no_smaller_request_helps_pauses() -> None:
    driver = Driver([submit()])
    driver.answers = partial(_always, Answer.REFUSED)
    driver.act()
    assert Wake("here") not in driver.asked
    assert "said so" in driver.site.why_failed(submit().demand.shape, 100.0)


def test_what_the_scheduler_gave_is_written_down_once() -> None:
    driver = Driver()
    driver.submit_bag()
    pilot = driver.pilot()
    driver.reserve(pilot)
    report = JobReport(
        id="job1", tag="tag1", state=JobState.RUNNING, start=90.0, processors=4, held=4, limit=600
    )
    driver.news = [PilotNews(pilot=1, report=report)]
    for _ in range(2):
        driver.run()
    asked = [each for each in driver.asked if isinstance(each, PilotsChanged)]
    changed = [pilot for each in asked for pilot in each.pilots]
    assert [(each.request, each.held) for each in changed] == [(Request(2, 600), 4)]
    assert not [each for each in driver.asked if isinstance(each, RequestChanged)][1:]


def test_a_withdrawn_request_that_never_started_uses_up_no_submission() -> None:
    driver = Driver()
    driver.site.submissions = Submissions(1)
    pilot = driver.site.change(driver.pilot(), leaving="nothing waits")
    driver.site.submissions.note(pilot.submitted)
    assert driver.site.submissions.left_at(1.0).left == 0
    assert "max_submissions is 1 an hour" in driver.site.why_failed(submit().demand.shape, 1.0)
    report = JobReport(id="job1", tag="tag1", state=JobState.CANCELLED)
    driver.news = [PilotNews(pilot=pilot.id, report=report)]
    driver.run()
    assert driver.site.submissions.left_at(1.0).left == 1
