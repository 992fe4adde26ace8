"""Limits from queues and the server, and what a site's configuration makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.loading import parse_config
from adaptor.config.schema import LimitsConfig, SiteConfig
from adaptor.model import Bound, Request
from adaptor.units import Duration
from backends.ceilings import limits_of
from backends.findings import Finding
from backends.observed.rows import Amounts
from backends.pbs import discover
from backends.pbs.checking import check_donation, check_nodes, check_queue, check_server, check_settings
from backends.pbs.fields import parse_long, parse_user_limit
from backends.pbs.limits import ceilings, of_array, refusal, roomiest, together, with_least
from backends.pbs.openpbs.hardware import nodes_of, queues_of, server_of
from backends.pbs.reading import PbsAnswers, PbsTerms
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue, Preemption
from tests.backends.pbs.openpbs_recordings import FIXTURES, recorded

Fake = Callable[[str, str], Path]


def terms(queue: str, user: str = "alice", nodes: list[PbsNode] | None = None) -> PbsTerms:
    """Those of the recorded cluster."""
    queues = {q.name: q for q in queues_of(parse_long(recorded("01-idle-qstat-Qf"), "Queue: "), user)}
    (server,) = parse_long(recorded("01-idle-qstat-Bf"), "Server: ")
    if nodes is None:
        nodes = nodes_of(parse_long(recorded("01-idle-pbsnodes-av"), ""))
    return PbsAnswers(server=server_of(server, user), queues=queues, nodes=nodes).terms(queue)


def levels(findings: list[Finding]) -> list[str]:
    return [finding.level for finding in findings]


@pytest.mark.parametrize(
    ("queue", "requests", "processors", "seconds"),
    [
        ("workq", math.inf, 16, 86_400),
        ("express", math.inf, 16, 1800),
        ("limited", 1, 8, 3600),
        ("scavenger", math.inf, 16, math.inf),
        ("route", math.inf, 16, 86_400),
    ],
)
def test_recorded_limits(queue: str, requests: float, processors: int, seconds: float) -> None:
    known = ceilings(terms(queue))
    assert (known.requests.value, known.processors.value, known.seconds.value) == (
        requests,
        processors,
        seconds,
    )


def test_each_limit_says_where_it_comes_from_and_ours_are_polite() -> None:
    known = ceilings(terms("limited"))
    assert known.requests.source == "max_run of queue limited"
    assert known.processors.source == "resources_max.ncpus of queue limited"
    assert known.seconds.source == "resources_max.walltime of queue limited"
    polite = limits_of(ceilings(terms("scavenger")))
    assert (polite.max_pending_requests, polite.max_proc, polite.max_tr) == (4, 16, 86_400)


def test_limits_of_the_server_and_on_nodes_bind_too() -> None:
    recorded_terms = terms("workq")
    server = msgspec.structs.replace(recorded_terms.server, max_queued=2, max_nodes=3)
    known = ceilings(msgspec.structs.replace(recorded_terms, server=server))
    assert (known.requests.value, known.requests.source) == (2, "max_queued of the server")
    assert (known.processors.value, known.processors.source) == (12, "resources_max.nodect of the server")


def test_the_memory_of_one_job_is_read_with_its_source() -> None:
    text = recorded("01-idle-qstat-Qf").replace(
        "resources_max.ncpus = 8", "resources_max.ncpus = 8\n    resources_max.mem = 2gb"
    )
    queues = {each.name: each for each in queues_of(parse_long(text, "Queue: "), "alice")}
    known = terms("limited")
    site = msgspec.structs.replace(known.site, queue=queues["limited"])
    found = ceilings(msgspec.structs.replace(known, site=site, queues=queues)).allowed().max_memory
    assert (found.value, found.source) == (2 * 2**30, "resources_max.mem of queue limited")
    assert ceilings(terms("limited")).allowed().max_memory.value == math.inf


def test_behind_a_routing_queue_the_roomiest_counts() -> None:
    known = terms("route")
    assert roomiest(known.site.queue, known.queues).name == "workq"
    assert not refusal(known.queues["workq"], Request(16, 86_400))
    assert refusal(known.queues["express"], Request(16, 1801))
    assert refusal(known.queues["limited"], Request(9, 60))


def test_a_queue_says_why_it_does_not_take_a_request() -> None:
    queue = PbsQueue(
        name="large", min_processors=4, min_seconds=600, max_processors=8, max_seconds=3600, shuts_out=""
    )
    assert refusal(queue, Request(8, 600)) == ""
    for request, words in (
        (Request(9, 600), "at most 8 processors: lower `limits.max_proc`"),
        (Request(8, 3601), "at most 3600 s: lower `limits.max_tr`"),
        (Request(3, 600), "at least 4 processors: name another queue"),
        (Request(4, 599), "at least 600 s: raise `pad`"),
    ):
        assert words in refusal(queue, request)
    assert "its acl_users" in refusal(terms("vip").site.queue, Request(1, 60))


def test_a_least_time_is_one_that_the_queues_take_which_take_the_request() -> None:
    queue = terms("workq").site.queue
    short = msgspec.structs.replace(queue, max_seconds=3600.0)
    long = msgspec.structs.replace(queue, min_seconds=1800.5)
    assert with_least(Request(8, 600, 60), [short, long]) == Request(8, 600, 60)
    assert with_least(Request(8, 3600, 60), [short, long]) == Request(8, 3600, 1801)
    assert with_least(Request(8, 3600, 2000), [short, long]) == Request(8, 3600, 2000)
    assert with_least(Request(8, 1801, 60), [long]) == Request(8, 1801), "nothing is left to cut"
    assert with_least(Request(8, 3600), [long]) == Request(8, 3600)


def test_least_sizes_of_a_queue_are_read_and_told() -> None:
    text = recorded("01-idle-qstat-Qf").replace(
        "resources_max.ncpus = 8", "resources_min.ncpus = 2\n    resources_min.walltime = 00:10:00"
    )
    queues = {each.name: each for each in queues_of(parse_long(text, "Queue: "), "alice")}
    assert (queues["limited"].min_processors, queues["limited"].min_seconds) == (2, 600)
    known = terms("limited")
    site = msgspec.structs.replace(known.site, queue=queues["limited"])
    found = list(check_queue(msgspec.structs.replace(known, site=site, queues=queues)))
    assert levels(found) == ["ok", "warning", "ok"]
    assert "each request has 2 processors at least" in found[0].text
    assert "set `pad: 10m`" in found[1].text


def test_a_queue_that_shuts_us_out_is_told_and_not_written() -> None:
    (found, *_) = check_queue(terms("vip"))
    assert (found.level, found.text) == (
        "error",
        "queue vip takes no jobs of ours, its acl_users do not admit alice: name another as `partition`",
    )
    assert levels(list(check_queue(terms("vip", "bob")))) == ["ok"]


@pytest.mark.parametrize(
    ("order", "express", "expected", "words"),
    [
        ("D", 150, ["ok", "ok"], "yield by preempt_order D"),
        ("R", 150, ["ok", "ok"], "yield by preempt_order R"),
        ("SCR", 150, ["ok", "warning"], "PBS suspends pilots"),
        ("C", 150, ["ok", "error"], "cannot be checkpointed: it needs D"),
        ("D", 151, ["ok", "warning", "ok"], "only a queue with at least 151 preempts"),
    ],
)
def test_how_pilots_yield_is_told(order: str, express: int, expected: list[str], words: str) -> None:
    site = SiteConfig(backend="pbs", donation=DonationConfig(mode="preemptible", partition="scavenger"))
    known = Preemption(order=order, express_priority=express)
    found = list(check_donation(site, terms("workq"), known))
    assert levels(found) == expected
    assert any(words in each.text for each in found)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("[u:PBS_GENERIC=3]", 3),
        ("[u:PBS_GENERIC=3],[u:alice=7]", 7),
        ("[u:bob=5]", None),
        ("[o:PBS_ALL=100]", 100),
        ("[u:PBS_GENERIC=30],[o:PBS_ALL=20]", 20),
        ("[g:PBS_GENERIC=4],[u:PBS_GENERIC=9]", 4),
        ('[u:"alice"=2]', 2),
        ("[u:PBS_GENERIC=0]", 0),
        ("12", 12),
        ("none", None),
    ],
)
def test_limits_of_a_user(text: str, limit: int | None) -> None:
    assert parse_user_limit(text, "alice") == limit


def test_a_limit_for_a_user_by_name_is_ours_alone() -> None:
    text = recorded("01-idle-qstat-Qf").replace("max_run = [u:P", "max_run = [u:alice=2],[u:P")
    for user, expected in (("alice", 2), ("bob", 1)):
        queues = {each.name: each for each in queues_of(parse_long(text, "Queue: "), user)}
        assert queues["limited"].max_run == expected


def test_the_configuration_that_is_written_can_be_read_and_is_within_the_limits() -> None:
    text = discover.describe_server([terms(name) for name in ("limited", "workq", "route")])
    config = parse_config(text, "written.yaml")
    (site,) = config.sites.values()
    assert (site.backend, site.partition, site.processors_per_node) == ("pbs", "limited", 4)
    assert site.limits == LimitsConfig(1, 1, 8, Duration(3600))
    kinds = "4 processors and 4G of memory or 4 processors, 4G of memory and 2 GPUs"
    assert f"4 nodes in service with {kinds} each\n" in text
    assert "each; the default queue\n" in text
    every = parse_config("\n".join(line.removeprefix("# ") for line in text.split("\n")[3:]), "all.yaml")
    assert list(every.sites) == ["limited", "workq", "route"]


def test_nodes_that_are_given_whole_only() -> None:
    free = frozenset({"free"})
    nodes = [
        PbsNode(name=name, host=name, states=free, processors=8, exclusive=True) for name in ("n1", "n2")
    ]
    whole = terms("workq", nodes=nodes)
    assert "whole_nodes: true" in discover.describe_server([whole])
    site = SiteConfig(backend="pbs", partition="workq")
    assert levels(list(check_nodes(site, whole.site))) == ["error"]
    good = msgspec.structs.replace(site, whole_nodes=True, processors_per_node=8)
    assert levels(list(check_nodes(good, whole.site))) == []
    wrong = msgspec.structs.replace(good, processors_per_node=6)
    assert levels(list(check_nodes(wrong, whole.site))) == ["error"]


@pytest.mark.parametrize(
    ("queue", "expected"),
    [("workq", ["ok"]), ("closed", ["error", "warning", "ok"]), ("route", ["ok", "warning"])],
)
def test_a_queue_is_checked(queue: str, expected: list[str]) -> None:
    assert levels(list(check_queue(terms(queue)))) == expected


def test_a_server_that_hides_and_forgets_is_told() -> None:
    known = terms("workq")
    assert levels(list(check_server(known))) == ["ok"]
    server = msgspec.structs.replace(known.server, shows_all_jobs=False, history=0.0)
    assert levels(list(check_server(msgspec.structs.replace(known, server=server)))) == ["warning", "warning"]


def test_settings_of_other_schedulers_are_told() -> None:
    assert levels(list(check_settings(SiteConfig(backend="pbs", qos="fast")))) == ["warning"]


@pytest.fixture
def answering(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "alice")
    fake(
        "qstat",
        f"case $1 in --version) echo 'pbs_version = 23.06.06';; -B) cat {FIXTURES}/01-idle-qstat-Bf.txt;; "
        f"-Q) cat {FIXTURES}/01-idle-qstat-Qf.txt;; esac",
    )
    fake("pbsnodes", f"cat {FIXTURES}/01-idle-pbsnodes-av.txt")
    fake("qmgr", "echo 'qmgr: not for you' >&2; exit 1")


@pytest.mark.usefixtures("answering")
def test_a_site_is_written_for_the_pbs_that_answers() -> None:
    config = parse_config(discover.describe_sites(), "written.yaml")
    assert list(config.sites) == ["workq"]
    assert levels(discover.check_site(config.sites["workq"])) == ["ok"] * 9
    assert "vip" not in discover.describe_sites()


@pytest.mark.usefixtures("answering")
def test_what_goes_beyond_is_found() -> None:
    site = SiteConfig(backend="pbs", partition="limited", limits=LimitsConfig(3, 3, 9, Duration(3601)))
    found = discover.check_site(site)
    assert [f.text.split(" is ")[0] for f in found if f.level == "error"] == [
        "limits.max_pending_requests",
        "limits.max_pilots",
        "limits.max_proc",
        "limits.max_tr",
    ]
    (only,) = discover.check_site(SiteConfig(backend="pbs", partition="night"))
    assert (only.level, "no queue night" in only.text) == ("error", True)


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    ("donation", "found"),
    [
        (DonationConfig(mode="agent"), ["ok"]),
        (DonationConfig(mode="preemptible", partition="scavenger"), ["ok", "warning"]),
        (DonationConfig(mode="preemptible", partition="night"), ["error"]),
    ],
)
def test_what_can_be_donated_is_looked_at(donation: DonationConfig, found: list[str]) -> None:
    site = SiteConfig(backend="pbs", partition="workq", donation=donation)
    about = [each for each in discover.check_site(site) if each.text.startswith("donation")]
    assert levels(about) == found


def test_what_jobs_may_hold_together() -> None:
    """Of the user, of all users of the queue; of a group, by the user's first one."""
    text = recorded("01-idle-qstat-Qf").replace(
        "max_run = [u:P",
        "max_run_res.ncpus = [u:PBS_GENERIC=6],[o:PBS_ALL=9],[g:chem=4],[g:bio=2]\n    max_run = [u:P",
    )
    queues = {each.name: each for each in queues_of(parse_long(text, "Queue: "), "alice", ["chem", "bio"])}
    assert queues["limited"].together == {"u": 6, "o": 9, "g": 4}
    seen = terms("limited")
    jobs = [
        msgspec.structs.replace(job, id=f"{number}", queue=queue, owner=owner, state=state, processors=number)
        for number, (queue, owner, state, job) in enumerate(
            (
                ("limited", "alice", "R", HELD),
                ("limited", "bob", "R", HELD),
                ("workq", "alice", "R", HELD),
                ("limited", "alice", "Q", msgspec.structs.replace(HELD, nodes={})),
            ),
            1,
        )
    ]
    site = msgspec.structs.replace(seen.site, queue=queues["limited"])
    found = together(msgspec.structs.replace(seen, site=site, jobs=jobs), "alice")
    assert {bound.most: [count for _, count in bound.held] for bound in found} == {6: [1], 9: [1, 2], 4: [1]}
    assert {bound.most: bound.waiting for bound in found} == dict.fromkeys((6, 9, 4), frozenset("4"))


HELD = PbsJob(
    id="1",
    tag="x",
    owner="alice",
    state="R",
    limit=600.0,
    start=1000.0,
    nodes={"node01": Amounts(1)},
)


def test_a_request_has_the_least_that_a_queue_takes() -> None:
    seen = terms("limited")
    queue = msgspec.structs.replace(seen.site.queue, min_processors=3)
    site = msgspec.structs.replace(seen.site, queue=queue)
    known = ceilings(msgspec.structs.replace(seen, site=site))
    assert known.least == Bound(3, "resources_min.ncpus of queue limited")
    assert known.allowed().min_proc == 3


@pytest.mark.parametrize(
    ("asked", "of_each"),
    [
        (Request(1, 600), Request(1, 600)),
        (Request(1, 600, 90), Request(1, 580)),
        (Request(1, 600, 590), Request(1, 590)),
    ],
)
def test_an_array_does_not_shrink_and_fits_the_slot_all_the_same(asked: Request, of_each: Request) -> None:
    """PBS 23.06: "min_walltime" and "max_walltime" are not valid resources for a job array."""
    assert of_array(asked) == of_each
