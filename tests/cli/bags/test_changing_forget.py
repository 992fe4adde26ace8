"""`adaptor forget` asks first, and tells the daemon which bags."""

from __future__ import annotations

from adaptor import api
from tests.cli.fake_control import bag_view
from tests.cli.invoking import Cli, Serve


def test_it_asks_and_forgets(cli: Cli, serve: Serve) -> None:
    server = serve(
        {
            api.GetBags: api.Bags([bag_view(3), bag_view(4)]),
            api.Forget: lambda question: len(question.bags),
        }
    )
    refused = cli("forget", "3-4", input=b"n\n")
    assert refused.code != 0
    assert "forget 2 bags (3 to 4) for good?" in refused.err
    assert server.asked(api.Forget) == []
    assert cli("forget", "3-4", input=b"y\n").out == "2 bags forgotten\n"
    assert cli("forget", "3-4", "--yes", "--json").value == {"bags": [3, 4]}
    assert server.asked(api.Forget) == [api.Forget([3, 4])] * 2


def test_earlier_bags_are_counted(cli: Cli, serve: Serve) -> None:
    serve(
        {
            api.GetBags: api.Bags([bag_view(9)], None, 8),
            api.GetPilots: [],
        }
    )
    told = cli("status")
    assert "8 earlier bags: adaptor status all" in told.out
