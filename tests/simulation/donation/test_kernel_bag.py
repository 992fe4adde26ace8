"""The kernels of the donation against the scheduling core, call by call, on random scenes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import DonationRules, Hours
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation.driver import run_donation
from adaptor.simulation.donation.kernel_bag import KernelBag
from adaptor.simulation.donation.processors import Processors
from tests.simulation.donation.both_bags import BothBags
from tests.simulation.donation.test_driver import instant_terms, one, terms_of
from tests.simulation.grid_strategies import bags, cluster_of, scenes
from tests.simulation.trace_strategies import PROCESSORS, jobs_from

rules = st.builds(
    DonationRules,
    choose=st.sampled_from(["likely", "likely", "likely", "all"]),
    useful_time=st.sampled_from([0.0, 5.0, 600.0]),
    fit=st.sampled_from([0.1, 0.5, 0.9]),
    last_fit=st.sampled_from([0.01, 0.1, 0.9]),
    patience=st.integers(1, 3),
)


@st.composite
def learners(draw: st.DrawFn) -> IdleLearner:
    """What was seen of idle periods before: nothing, or many that were about as short as the tasks."""
    learner = IdleLearner()
    for length in draw(st.lists(st.integers(1, 100), max_size=5)):
        learner.saw(0.0, float(length), taken=draw(st.booleans()), nodes=draw(st.integers(1, 200)))
    return learner


known_terms = instant_terms().filter(lambda terms: not terms.traits.even_odds)


@given(scenes, bags, known_terms, rules, learners(), st.sampled_from(["transparent", "mixed"]))
@settings(max_examples=300)
def test_both_do_the_same_in_every_run(scene, runtimes, terms, rules, learner, allocation):
    place = Processors(cluster_of(scene), learner)
    run_donation(place, np.array(runtimes), terms, rules, allocation, BothBags)


def jobs(longest: int) -> st.SearchStrategy[tuple[int, int, int, int]]:
    """Local jobs: submit, processors, estimate, run."""
    times = st.tuples(st.integers(1, longest), st.integers(1, longest)).map(sorted)
    return st.tuples(st.integers(0, 3000), st.integers(1, PROCESSORS), times).map(
        lambda job: (job[0], job[1], job[2][1], job[2][0])
    )


@given(
    st.lists(jobs(900), max_size=25) | st.lists(jobs(60), min_size=20, max_size=60),
    st.lists(st.integers(1, 199), min_size=1, max_size=30)
    | st.lists(st.integers(50, 199), max_size=6, min_size=1),
    rules,
    learners(),
    st.sampled_from(["transparent", "mixed"]),
)
@settings(max_examples=300)
def test_both_do_the_same_where_tasks_are_cut_and_preempted_often(rows, runtimes, rules, learner, allocation):
    place = Processors(Simulation(jobs_from(rows), PROCESSORS, "conservative"), learner)
    place.cluster.advance(0)
    place.watch()
    run_donation(place, np.array(runtimes), terms_of(), rules, allocation, BothBags)


_HELD_WHILE_OTHERS_WAIT = [
    (230, 6, 102, 96),
    (198, 6, 110, 19),
    (167, 7, 139, 138),
    (305, 8, 112, 112),
    (161, 8, 143, 143),
    (176, 8, 53, 15),
    (36, 6, 108, 36),
    (44, 6, 44, 23),
]
_PLANNED_SOONER_THAN_BEFORE = [(53, 7, 141, 141), (4, 6, 99, 72), (322, 8, 100, 100)]


@pytest.mark.parametrize(
    ("rows", "runtimes", "rules"),
    [
        pytest.param(
            _HELD_WHILE_OTHERS_WAIT,
            [181, 183, 159, 67],
            DonationRules(useful_time=0.0, last_fit=0.01, patience=2),
            id="a held task is started while others wait that do not fit",
        ),
        pytest.param(
            _PLANNED_SOONER_THAN_BEFORE,
            [75, 58, 175],
            DonationRules(useful_time=0.0, last_fit=0.5, patience=1),
            id="a job is planned before the end of the pilot that uses the node",
        ),
    ],
)
def test_both_do_the_same_where_few_scenes_tell_a_rule(rows, runtimes, rules):
    """Found by search: these fail where only one of both has the rule, which random scenes seldom show."""
    place = Processors(Simulation(jobs_from(rows), PROCESSORS, "conservative"), IdleLearner())
    place.cluster.advance(0)
    place.watch()
    run_donation(place, np.array(runtimes), terms_of(), rules, "transparent", BothBags)


def test_both_release_a_held_task_whose_request_starts_late():
    """505 s where held tasks wait for their requests whenever those start."""
    rows = [
        (226, 3, 143, 92),
        (124, 3, 145, 55),
        (35, 6, 262, 154),
        (297, 3, 162, 76),
        (358, 6, 196, 52),
        (310, 5, 97, 88),
        (81, 6, 181, 3),
        (63, 5, 254, 127),
        (167, 1, 218, 165),
    ]
    result = one([91, 186, 140, 101], rows, "mixed", BothBags, useful_time=0.0, fit=0.1, patience=1)
    assert (result.turnaround, result.donated) == (459, 186)


def test_a_task_cut_though_it_had_all_the_time_there_is_is_given_up_by_both():
    """As in the daemon (`RuntimeLearner.hopeless`): 195 of 200 s were not enough."""
    rows = [(0, 8, 5, 5), (200, 8, 10, 10)]
    result = one([198], rows, make=BothBags, useful_time=0.0)
    assert (result.failed, result.turnaround) == (1, 200)


@pytest.mark.parametrize("more", [{"max_nodes": 3}, {"reserve_nodes": 1}, {"hours": (Hours(0, 3600),)}])
def test_the_kernels_refuse_rules_that_they_do_not_know(more):
    place = Processors(Simulation(jobs_from([]), PROCESSORS, "conservative"), IdleLearner())
    with pytest.raises(ValueError, match="need the core"):
        KernelBag(place, np.array([1]), terms_of(), DonationRules(**more), "mixed")


@pytest.mark.parametrize("more", [{"initial_tr": 10.5}, {"initial_tr": 0.5}, {"heuristic": "completion"}])
def test_the_kernels_refuse_parts_of_seconds_and_even_odds(more):
    place = Processors(Simulation(jobs_from([]), PROCESSORS, "conservative"), IdleLearner())
    terms = terms_of(**more)
    with pytest.raises(ValueError, match="need the core"):
        KernelBag(place, np.array([1]), terms, DonationRules(), "mixed")
