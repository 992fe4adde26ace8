"""`adaptor quote`: what is at fault is said before a sample is paid for."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor import extras as extra
from adaptor.cli.bags.sampling import SampledBag
from tests.cli.invoking import Cli


@pytest.fixture(autouse=True)
def nothing_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a daemon was wanted")

    monkeypatch.setattr("adaptor.cli.bags.quote.ensure_daemon", never)
    monkeypatch.chdir(tmp_path)
    Path("tasks.bag").write_text("true\n" * 20)


def test_a_quote_without_scipy(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    known = extra.importlib.util.find_spec
    monkeypatch.setattr(
        extra.importlib.util, "find_spec", lambda name: None if name == "scipy" else known(name)
    )
    done = cli("quote", "tasks.bag")
    assert done.code == 1
    assert "choosing between sites needs scipy" in done.err


def test_what_is_submitted_names_the_sample_that_belongs_to_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scipy", reason="needs the extra `quotes`")
    quote = "adaptor.cli.bags.quote"
    monkeypatch.setattr(f"{quote}.ensure_daemon", lambda *_, **__: False)
    monkeypatch.setattr("adaptor.cli.bags.sampling.take_samples", lambda bag: SampledBag([], bag, [1, 2]))
    monkeypatch.setattr(f"{quote}._go_on", lambda *_: 3)
    assert cli("quote", "tasks.bag", "--choose", "1").lines[-2:] == [
        "bag 3: 20 tasks",
        "with the sample these are all tasks: adaptor results 1,2,3",
    ]
