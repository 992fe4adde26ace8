"""Groups and means of runs, and the texts of each page."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from adaptor_experiments.tables import Mean, Number, Runs, Texts, texts

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.parent.name for path in (ROOT / "experiments").glob("*/*/page.yaml"))


class Run(msgspec.Struct, frozen=True):
    kind: str
    order: int
    seconds: float


RUNS = Runs(Run(kind, order, 10.0 * order) for order in (1, 3) for kind in "ba")


def test_groups_come_in_their_order_and_have_means() -> None:
    groups = RUNS.by("kind")
    assert list(groups) == ["b", "a"]
    assert groups["a"] == RUNS.where(kind="a") == (Run("a", 1, 10.0), Run("a", 3, 30.0))
    assert list(RUNS.by("kind", "order")) == [("b", 1), ("a", 1), ("b", 3), ("a", 3)]
    assert groups["a"].mean("seconds") == groups["a"].mean(lambda run: run.seconds) == 20.0
    assert groups["a"].spread("seconds") == Mean(20.0, 10.0)
    assert not RUNS.where(kind="a", order=2)


def test_a_mean_as_text() -> None:
    assert Mean(1234.56, 7).shown() == "1,234.6 ± 7.0"
    assert Mean(1.0, 0.25).shown(2, " h") == "1.00 ± 0.25 h"


def test_a_number_of_the_paper_agrees_or_has_its_reason() -> None:
    page = Texts(
        title="",
        setting="",
        tables={},
        numbers={
            "same": Number("T 1", "hosts", "19 ± 2.5"),
            "near": Number("T 1", "units", "19", reason="long first tasks"),
            "else": Number("T 1", "time", "19", reason="long first tasks"),
            "open": Number("T 1", "costs", "19"),
        },
    )
    ours = {"same": "19 ± 2.5", "near": "19.2", "else": "25"}
    rows = page.compared(ours, agree={"near"})
    assert [row[3:5] for row in rows] == [
        ["19 ± 2.5", "agrees"], ["19.2", "agrees"], ["25", "long first tasks"], ["-", "differs"],
    ]  # fmt: skip
    assert (page.numbers["same"].value, page.numbers["same"].deviation) == (19.0, 2.5)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    runs: int = 30
    kinds: tuple[int, ...] = (100, 1000)
    stretch: float = 1.0


def test_a_page_says_what_its_run_lacks() -> None:
    page = Texts(
        title="",
        setting="of seed {settings.seed}",
        tables={},
        sentences={"part": "Not the whole: {missing}."},
        terms={"runs": "runs", "kinds": "kinds", "stretch": "times", "samples": "samples"},
        whole={"samples": 7},
    )

    def says(settings: Asked, samples: int = 7, whole: Asked | None = None) -> tuple[str, ...]:
        return page.report(["Found."], [], [], settings=settings, whole=whole, samples=samples).conclusion

    assert says(Asked(seed=2)) == says(Asked(runs=60), 8) == ("Found.",), "more runs are no part"
    lacking = Asked(runs=3, kinds=(100,), stretch=0.7)
    told = "Not the whole: runs: 3 (whole: 30); kinds: 100 (whole: 100, 1,000); times: 0.7 (whole: 1)."
    assert says(lacking) == (told, "Found.")
    assert says(Asked(stretch=0.7), whole=Asked(stretch=0.7)) == ("Found.",)
    assert says(Asked(), 6)[0] == "Not the whole: samples: 6 (whole: 7)."


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_says_to_show_a_reason_exists_and_each_reason_is_one_of_a_number(name: str) -> None:
    page = texts(name)
    assert {*page.reasons} <= {number.reason for number in page.numbers.values()}
    titles = " ".join(table.title for table in page.tables.values())
    held = [remark.test for remark in (*page.remarks, *page.reasons.values())]
    for text in (*held, *(number.shown_by for number in page.numbers.values())):
        file, _, function = text.partition("::")
        if text.startswith("table "):
            assert text.removeprefix("table ").strip("“”") in titles
        elif text.startswith("tests/"):
            tests = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
            assert not function or function in {getattr(node, "name", "") for node in tests}, text


@pytest.mark.parametrize("name", PAGES)
def test_the_rows_of_a_text_table_are_as_long_as_its_headings(name: str) -> None:
    page = texts(name)
    for key in {"left-out", "omitted", "bags"} & {*page.tables}:
        table = page.tables[key]
        assert {len(row) for row in table.rows} <= {len(table.headings)}
