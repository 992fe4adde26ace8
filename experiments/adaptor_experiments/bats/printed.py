"""The numbers and figures of the slides beside ours, the reasons, and what is left out."""

from __future__ import annotations

import msgspec

from adaptor.budget.provisioning.quoting import NORMAL_SAMPLE, REPLICATED
from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.bats.design import (
    BUDGETS,
    INTERVAL,
    KINDS,
    SITES,
    THRESHOLD,
    UNIT,
    WAYS,
    Settings,
)

HOUR, MINUTE = 3600, 60


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """What a slide prints or draws, and what stands for it here."""

    slide: str
    what: str
    paper: str
    ours: str
    reason: str
    shown_by: str
    """A test, or a table of the page."""


def numbers(settings: Settings) -> tuple[Number, ...]:
    """In the order of the slides."""
    return (*_EXAMPLES, *_estimation(), *_evaluation(settings))


_EXAMPLES = (
    Number(
        slide="Task Farming",
        what="bags of tasks in grids",
        paper="75 % of the tasks, 90 % of the processor time",
        ours="-",
        reason="cited by the slides from other work, not measured by them",
        shown_by="-",
    ),
    Number(
        slide="Quality of Service",
        what="prices of Amazon machines per hour",
        paper="$0.085, $0.50, $0.17",
        ours=", ".join(f"{site.price:g}" for site in SITES) + " credits",
        reason="examples: the evaluation names neither machines nor prices, so ours are made up",
        shown_by="-",
    ),
)


def _estimation() -> tuple[Number, ...]:
    return (
        Number(
            slide="Cloud Characteristics",
            what="charging unit (ATU)",
            paper="1 hour, for example",
            ours=f"{UNIT / HOUR:g} hour",
            reason="the same; live it is the site's",
            shown_by="tests/budget/accounting/test_tariffs.py",
        ),
        Number(
            slide="Runtime Estimation",
            what="size of a sample",
            paper="+/- 30",
            ours=str(NORMAL_SAMPLE),
            reason="the same",
            shown_by="tests/budget/provisioning/test_quoting_sampling.py",
        ),
        Number(
            slide="Compact Sampling",
            what="tasks on all machines, and spread over them",
            paper="7, 30 - 7 = 23",
            ours=f"{REPLICATED}, {NORMAL_SAMPLE - REPLICATED}",
            reason="the same",
            shown_by="tests/budget/provisioning/test_quoting_sampling.py",
        ),
        Number(
            slide="Cluster Configuration",
            what="time T_e and cost B_e of a configuration",
            paper="N / Σ(a/T); ⌈T_e / ATU⌉ · Σ a·C",
            ours="the same, with the end of the last tasks; units by site",
            reason="without it the promised time is missed; sites charge different units",
            shown_by="tests/experiments/bats/test_reasons.py",
        ),
        Number(
            slide="Budget Estimation",
            what="choices of the user",
            paper="cheapest, +10/20 %; fastest, -10/20 %",
            ours="the same six",
            reason="the same",
            shown_by="tests/budget/provisioning/test_menu.py",
        ),
        Number(
            slide="Progress Monitoring",
            what="re-evaluation",
            paper="every 5 minutes, for example",
            ours=f"every {INTERVAL / MINUTE:g} minutes; the daemon every 10 s",
            reason="the same; the daemon looks whenever it has new figures",
            shown_by="table “Replanning”",
        ),
    )


def _evaluation(settings: Settings) -> tuple[Number, ...]:
    return (
        Number(
            slide="Tail Phase",
            what="how long a task that runs will take",
            paper="by average and variance",
            ours="a bad case (90 %) among the finished tasks that took longer",
            reason="a bag ends with its last task, and paid idle time is free: the bad case counts",
            shown_by="tests/budget/provisioning/test_tail_phase.py",
        ),
        Number(
            slide="Tail Phase (2/2)",
            what="waiting tasks at which migration begins",
            paper="+/- 30",
            ours=str(THRESHOLD),
            reason="the same",
            shown_by="table “What the slides find, and what is found here”",
        ),
        Number(
            slide="Tail Phase Evaluation",
            what="ways to end a bag",
            paper="5",
            ours=f"5, and the daemon's: {len(WAYS)}",
            reason="the daemon's is what a user's bag meets",
            shown_by="table “Time”",
        ),
        Number(
            slide="Types of Bags Used",
            what="distributions",
            paper="normal, truncated Levy, multi-modal (real world data)",
            ours=", ".join(KINDS),
            reason="the slides give no parameters and the real data is not published: all three are drawn",
            shown_by="tests/experiments/bats/test_campaign.py",
        ),
        Number(
            slide="Normal Distribution",
            what="bags, runs of each",
            paper="30, 30",
            ours=f"{settings.bags}, {settings.runs}",
            reason="the same" if (settings.bags, settings.runs) == (30, 30) else "options --bags and --runs",
            shown_by="runs.csv",
        ),
        Number(
            slide="Normal …, Heavy-tailed …, Multi-modal Distribution",
            what="bars of the ways to end a bag",
            paper="no numbers in the text; “low is good”",
            ours="both figures of this page",
            reason="what can be compared is what the slides conclude from them",
            shown_by="table “What the slides find, and what is found here”",
        ),
        Number(
            slide="Multi-modal Distribution",
            what="budgets",
            paper="fastest; minimal + 10 %",
            ours="; ".join(reversed(BUDGETS)),
            reason="the same, for all kinds of bags",
            shown_by="table “Time”",
        ),
    )


LEFT_OUT = (
    (
        "BaTS on the Amazon Spot Market; Spot Market: pros and cons",
        "machines whose price changes, and that are lost without notice when it exceeds the bid; 8 minutes"
        " until one is there",
        "a batch scheduler has no market: a site's price is set in its configuration. What is lost without"
        " notice, and costs less, are donated nodes (docs/donation.md)",
    ),
    (
        "BaTS Sampling for the Spot Market",
        "a sample on machines of changing price (drawing)",
        "no machine here changes its price; the sample itself is that of the other slides",
    ),
    (
        "Bidding Strategies",
        "Max_i = T_p / T_i · c_p - ε, the current price, and the average of both",
        "no bids can be made at a batch scheduler; the code had no caller, and is gone",
    ),
    (
        "Spot Market Estimations",
        "18,000 tasks of 32, 15 and 8 s on at most 10 t1.micro, m1.small and m1.medium, with bids of $0.02,"
        " $0.007 and $0.015 (drawing)",
        "the prices of that day are not printed, and a market that we make up would show its own assumptions;"
        " the slides see no clear winner",
    ),
    (
        "Spot Market Runs; Spot Market Findings",
        "real runs (drawing); “it is too early for final conclusions”",
        "as above: nothing that could be confirmed or contradicted",
    ),
    (
        "Contrail, ConPaaS",
        "the platform, its web pages and its services",
        "another system; the adaptor is one for batch schedulers",
    ),
)
"""Slide, what it has, and why it is not here."""


def compared(settings: Settings) -> Exhibit:
    """Each number of the slides beside ours."""
    return Exhibit(
        name="paper-numbers",
        title="The numbers and figures of the slides, and ours",
        headings=("slide", "what", "slides", "ours", "reason", "shown by"),
        rows=[list(map(str, msgspec.structs.astuple(each))) for each in numbers(settings)],
    )


def left_out() -> Exhibit:
    """What of the slides is not done, and why."""
    return Exhibit(
        name="left-out",
        title="What of the slides is left out",
        headings=("slides", "what", "why"),
        rows=[list(each) for each in LEFT_OUT],
    )
