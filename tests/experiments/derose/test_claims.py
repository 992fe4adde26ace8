"""The sentences of §4.4, judged on results that are made to show them or not."""

from __future__ import annotations

import msgspec
import pytest

from adaptor_experiments.derose.claims import BLUE, CLAIMS, CTC, LOADED, SP2, judged
from adaptor_experiments.derose.comparison import Comparison, compare
from adaptor_experiments.derose.design import WORKLOADS, Settings
from adaptor_experiments.derose.sample import Outcome
from adaptor_experiments.tables import texts
from adaptor_simulation.slowdown import UNHARMED

BY_KEY = {workload.key: workload for workload in WORKLOADS}
PART = Settings(means=(100, 10_000), max_pending=(1, 6))


def case(key: str, speedup, *, chance: float = 0.0, requests: int = 9, size: float = 1.0) -> Comparison:
    """Results of one trace in which adaptive is `speedup(kind)` times as fast as static.

    Args:
        chance: by which share turnarounds of static differ between the four samples.
        requests: of adaptive, where static has 3.
        size: of a request of adaptive, where one of static is 1.
    """
    made = []
    for sample in range(4):
        for kind in PART.job_types:
            for pending in PART.max_pending:
                static = Outcome(
                    trace=key, sample=sample, tasks=kind.tasks, mean=kind.mean,
                    heterogeneity=kind.heterogeneity, max_pending=pending, heuristic="static", submitted=0,
                    turnaround=round(1e6 * (1 + chance * (-1) ** sample)), bound=100, requests=3,
                    withdrawn=0, reshaped=0, held=3000, work=2000, local_wait=0, decisions=1, planning=0.0,
                    **msgspec.structs.asdict(UNHARMED),
                )  # fmt: skip
                adaptive = msgspec.structs.replace(
                    static, heuristic="adaptive", turnaround=round(1e6 / speedup(kind, pending)),
                    requests=requests, held=round(1000 * size * requests),
                )  # fmt: skip
                made += [static, adaptive]
    return compare(BY_KEY[key.partition(" ")[0]], made, seed=1)


def few_long(kind) -> bool:
    return kind.mean == 10_000 and kind.tasks <= 1000


def as_the_paper(kind, _) -> float:
    """On SDSC SP2 and BlueHorizon."""
    if kind.mean == 10_000:
        return 0.8 if few_long(kind) else 1.05
    return 2.0


AS_SAID = {
    SP2: case(SP2, as_the_paper),
    BLUE: case(BLUE, lambda *kind: 1.1 * as_the_paper(*kind)),
    CTC: case(CTC, lambda *kind: 20 * as_the_paper(*kind)),
    LOADED: case(LOADED, lambda *_: 1.83, chance=0.02),
}


def test_each_line_of_the_page_has_its_judge() -> None:
    assert [row[0] for row in texts("derose").tables["claims"].rows] == list(CLAIMS)


def test_what_is_as_the_paper_says_is_confirmed() -> None:
    table, verdicts = judged(AS_SAID, whole=True)
    confirmed = {key for key, verdict in verdicts.items() if verdict == "confirms"}
    assert confirmed == {*CLAIMS} - {"L"}, "a static request for the whole machine is not Algorithm 1"
    assert {len(row) for row in table.rows} == {len(table.headings)}


@pytest.mark.parametrize(
    ("key", "cases"),
    [
        ("A", {name: case(name, lambda *_: 0.9) for name in (SP2, BLUE, CTC)}),
        ("B", {name: case(name, lambda kind, _: 3 if kind.mean == 100 else 1) for name in (SP2, BLUE, CTC)}),
        ("C", {SP2: case(SP2, lambda *_: 0.9)}),
        ("D", {SP2: case(SP2, lambda kind, _: kind.heterogeneity)}),
        ("E", {SP2: case(SP2, lambda *_: 1), BLUE: case(BLUE, lambda *_: 2)}),
        ("F", {SP2: case(SP2, lambda *_: 1.2)}),
        ("G", {SP2: case(SP2, as_the_paper, requests=3)}),
        ("H", {BLUE: case(BLUE, lambda *_: 1.5)}),
        ("I", {SP2: case(SP2, as_the_paper, size=2.0)}),
        ("J", {CTC: case(CTC, lambda kind, pending: 0.9 if kind == PART.job_types[0] else 9)}),
        ("K", {SP2: case(SP2, lambda *_: 2), CTC: case(CTC, lambda *_: 1.5)}),
        ("L", {CTC: case(CTC, lambda *_: 2)}),
        ("M", {SP2: case(SP2, lambda *_: 2), CTC: case(CTC, lambda *_: 1.5)}),
        ("N", {LOADED: case(LOADED, lambda *_: 2.5, chance=0.02)}),
        ("O", {SP2: case(SP2, lambda *_: 2, chance=0.4)}),
    ],
)
def test_each_sentence_is_contradicted_where_its_opposite_is_found(key, cases) -> None:
    assert judged(cases, whole=True)[1][key] == "contradicts"


def test_chance_leaves_a_sentence_open() -> None:
    _, verdicts = judged({SP2: case(SP2, lambda *_: 1.05, chance=0.4)}, whole=True)
    assert (verdicts["C"], verdicts["F"]) == ("open", "open")


def test_of_what_was_not_run_nothing_is_said() -> None:
    table, verdicts = judged({LOADED: AS_SAID[LOADED]}, whole=False)
    assert verdicts == {}
    assert {row[-1] for row in table.rows} == {"not in this run"}
    _, verdicts = judged({CTC: AS_SAID[CTC]}, whole=False)
    assert {*verdicts} == {"A", "D", "J", "L", "O"}
