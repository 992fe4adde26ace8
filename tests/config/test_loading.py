"""The configuration: what is right is understood, what is wrong is named by file, line and key."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.loading import (
    LAST,
    config_path,
    last_config,
    last_sites,
    load_config,
    parse_config,
    remember_config,
)
from adaptor.config.schema import BUILT_IN, Config, DaemonConfig, LimitsConfig
from adaptor.errors import AdaptorError, ConfigError
from adaptor.units import Duration

FULL = """\
sites:
  hpc:
    backend: slurm
    partition: batch
    account: physics
    qos: normal
    extra_args: [--exclusive, --mail-type=NONE]
    prologue: |
      module load python
    limits:
      max_pending_requests: 4
      max_proc: 64
      max_tr: 1-12:00:00
    heuristic: static
    initial_tr: 2h
    growth_factor: 3
    pad: 1:30
    idle_timeout: 45
    processors_per_node: 16
    whole_nodes: true
  here:
    backend: local
    processors: 2
daemon:
  host: login1
  port: 4711
  worker_timeout: 1m
"""


def broken(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "c.yaml")
    return str(caught.value)


def site(lines: str) -> str:
    """The text of a site file whose site has these further lines, from line 4 on."""
    return "sites:\n  hpc:\n    backend: slurm\n" + "".join(f"    {line}\n" for line in lines.splitlines())


def test_a_full_file() -> None:
    config = parse_config(FULL, "c.yaml")
    hpc = config.sites["hpc"]
    assert list(config.sites) == ["hpc", "here"]
    assert hpc.limits == LimitsConfig(4, None, 64, Duration(129600))
    assert [hpc.initial_tr, hpc.pad, hpc.idle_timeout] == [Duration(7200), Duration(90), Duration(45)]
    assert hpc.extra_args == ("--exclusive", "--mail-type=NONE")
    assert hpc.prologue == "module load python\n"
    assert config.daemon == DaemonConfig("login1", 4711, Duration(60))


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (
            f"limits: {{max_proc: 1{'0' * 23}}}",
            "4: sites.hpc.limits.max_proc: must be more than 0 and at most",
        ),
        (f"growth_factor: {'9' * 30}", "4: sites.hpc.growth_factor: must be from 2 to 1000, not 9999"),
        (
            f"growth_factor: 0x{'f' * 6000}",
            "4: sites.hpc.growth_factor: must be from 2 to 1000, not a number of thousands of digits",
        ),
        (f"pad: {'9' * 4000}", "4: sites.hpc.pad: "),
        (f"pad: {'9' * 5000}", "4: not valid YAML: "),
        ("pad: 101w\npartition: x\nidle_timeout: 9999w", "6: sites.hpc.idle_timeout: "),
        ('partition: "a\\nb"', "4: sites.hpc.partition: 'a\\nb' is not printable"),
        ('extra_args: ["\\e[2J"]', "4: sites.hpc.extra_args: '\\x1b[2J' is not printable"),
        ('prologue: "\\0"', "4: sites.hpc.prologue: a script cannot contain a NUL"),
        ('ssh: {host: h, identity: "a\\rb"}', "4: sites.hpc.ssh.identity: 'a\\rb' is not printable"),
        (
            'donation: {mode: agent, launcher: ["{node}\\n"]}',
            "4: sites.hpc.donation.launcher: '{node}",
        ),
        ("x: !!timestamp abc", "4: not valid YAML: "),
        ("x: !!int ''", "4: not valid YAML: "),
        ("x: !!bool maybe", "4: not valid YAML: "),
        ("[a]: 1", "4: a key must be a text"),
    ],
)
def test_what_no_site_can_mean_is_refused_with_its_place(lines: str, problem: str) -> None:
    message = broken(site(lines))
    assert message.startswith(f"c.yaml:{problem}")
    assert len(message) < 400


def test_the_submissions_in_an_hour() -> None:
    for text, hourly in (("60/h", 60), ("2/m", 120), ("1000 / day", 41), ("30", 30)):
        config = parse_config(site(f"max_submissions: {text}"), "c.yaml")
        assert config.sites["hpc"].max_submissions == hourly
    for text in ("0/h", "h", "60/s", "9999999/h", "1/d", "true"):
        assert "4: sites.hpc.max_submissions: " in broken(site(f"max_submissions: {text}"))


@pytest.mark.parametrize("host", ["a\\nb", "-oProxyCommand=x", "", "a b", "\\e[31m"])
def test_the_daemons_host_is_a_name_or_an_address(host: str) -> None:
    assert "daemon.host: " in broken(site("") + f'daemon: {{host: "{host}"}}\n')


ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10)
)
LONG_CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 2000))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (ALIASES, "c.yaml:5: more than 10,000 keys and values, its aliases followed"),
        (MERGES, "c.yaml:5: more than 10,000 keys and values, its aliases followed"),
        (LONG_CHAIN, "c.yaml:1: more than 10,000 keys and values, its aliases followed"),
        ("sites:\n  x: " + "[" * 5000 + "]" * 5000, "c.yaml:2: nested deeper than 50 levels"),
        ("{a: " * 5000 + "1" + "}" * 5000, "c.yaml:1: nested deeper than 50 levels"),
        ("- " * 5000, "c.yaml:1: nested deeper than 50 levels"),
        ("".join(f"key{n}: 1\n" for n in range(20_000)), "more than 10,000 keys and values"),
        ("".join(f"key{n}: 1\n" for n in range(300_000)), "c.yaml: is larger than 256 KiB"),
        ("a" * 300_000, "c.yaml: is larger than 256 KiB"),
    ],
    ids=["aliases", "merges", "chain", "lists", "mappings", "dashes", "keys", "many-keys", "long"],
)
def test_a_file_that_would_take_for_ever_is_refused_at_once(text: str, problem: str) -> None:
    assert problem in broken(text)


def test_a_large_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match=r"c\.yaml: is larger than 256 KiB"):
        load_config(path)


def test_aliases_and_merge_keys_serve_several_sites() -> None:
    text = """\
sites:
  one: &one {backend: slurm, partition: batch, pad: 60}
  two: {<<: *one, partition: long}
  three: *one
"""
    sites = parse_config(text, "c.yaml").sites
    assert sites["one"] == sites["three"]
    assert (sites["two"].partition, sites["two"].pad) == ("long", 60)


def test_what_is_left_out_has_its_default() -> None:
    hpc = parse_config(site(""), "c.yaml").sites["hpc"]
    assert hpc.heuristic == "elastic"
    assert hpc.assumed_runtime == 60.0
    assert msgspec.structs.replace(hpc, heuristic="adaptive").assumed_runtime == 3600.0, "the paper's hour"
    assert hpc.growth_factor == 2
    assert hpc.limits.max_proc is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (site("partion: x"), "c.yaml:4: sites.hpc.partion: unknown key (did you mean `partition`?)"),
        (
            site("limits:\n  max_prc: 4"),
            "c.yaml:5: sites.hpc.limits.max_prc: unknown key (did you mean `max_proc`?)",
        ),
        (
            site("donation:\n  mode: agent\n  max_node: 4"),
            "c.yaml:6: sites.hpc.donation.max_node: unknown key (did you mean `max_nodes`?)",
        ),
        (site("") + "daemon:\n  prt: 4\n", "c.yaml:5: daemon.prt: unknown key (did you mean `port`?)"),
        ("sits: {}\n", "c.yaml:1: sits: unknown key (did you mean `sites`?)"),
        (site("zzz: 1"), "c.yaml:4: sites.hpc.zzz: unknown key"),
    ],
)
def test_a_mistyped_key_is_named_with_its_likely_meaning(text: str, message: str) -> None:
    assert broken(text) == message


@pytest.mark.parametrize(
    ("lines", "where", "what"),
    [
        ("pad: soon", "4: sites.hpc.pad", "'soon' is not a duration"),
        ("pad:", "4: sites.hpc.pad", "None is not a duration"),
        ("pad: [1]", "4: sites.hpc.pad", "[1] is not a duration"),
        ("pad: 2020-01-01", "4: sites.hpc.pad", "is not a duration"),
        ("pad: -5", "4: sites.hpc.pad", "not negative"),
        ("pad: .nan", "4: sites.hpc.pad", "finite"),
        ("pad: 1" + "0" * 400, "4: sites.hpc.pad", "finite"),
        ("limits:\n  max_tr: 0", "5: sites.hpc.limits.max_tr", "must be more than 0"),
        ("limits:\n  max_proc: 0", "5: sites.hpc.limits.max_proc", "must be more than 0"),
        ("limits:\n  max_proc: many", "5: sites.hpc.limits.max_proc", "needs a whole number, not text"),
        ("limits:\n\n  max_tr: 20", "6: sites.hpc.limits.max_tr", "the pad takes 30 s"),
        ("limits: 4", "4: sites.hpc.limits", "needs a mapping of keys to values, not a whole number"),
        ("price: 10", "4: sites.hpc.price", "not a whole number; its keys are explicit, donated, gpu"),
        ("growth_factor: 1", "4: sites.hpc.growth_factor", "must be from 2 to 1000, not 1"),
        ("charging_unit: 1.5", "4: sites.hpc.charging_unit", "must be whole seconds from 1s to 1h, not 1.5"),
        ("overrun: [1]", "4: sites.hpc.overrun", "[1] is not a duration"),
        ("environment:\n  A: 1", "4: sites.hpc.environment[...]", "needs text, not a whole number"),
        ("price:\n  explicit: 0", "5: sites.hpc.price.explicit", "must be from 0.000001"),
        ("growth_factor: 1.5", "4: sites.hpc.growth_factor", "needs a whole number, not a fraction"),
        ("heuristic: greedy", "4: sites.hpc.heuristic", "'greedy'"),
        ("command_timeout: 0", "4: sites.hpc.command_timeout", "must be more than 0"),
        ("extra_args:\n  - --x\n  - 5", "6: sites.hpc.extra_args[1]", "needs text"),
        ("whole_nodes: 3", "4: sites.hpc.whole_nodes", "needs true or false"),
        ("backend: local", "4: sites.hpc.backend", "duplicate key"),
        ("gpus: -1", "4: sites.hpc.gpus", "must be from 0 to 1000, not -1"),
        ('gpus: ["0,1"]', "4: sites.hpc.gpus[0]", "Expected `str` matching regex"),
    ],
)
def test_a_bad_value_is_named_with_its_place(lines: str, where: str, what: str) -> None:
    message = broken(site(lines))
    assert message.startswith(f"c.yaml:{where}: ")
    assert what in message


def test_the_site_that_is_wrong_is_named_and_not_the_first() -> None:
    text = "sites:\n  good:\n    backend: local\n    pad: 5\n  bad:\n    backend: local\n    pad: soon\n"
    assert broken(text).startswith("c.yaml:7: sites.bad.pad: ")
    assert broken("sites:\n  good: {backend: local}\n  bad: {backend: lsf}\n").startswith(
        "c.yaml:3: sites.bad"
    )
    assert broken("sites:\n  good: {backend: local}\n  bad: {}\n").startswith("c.yaml:3: sites.bad: ")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "c.yaml:1: the file: "),
        ("5", "c.yaml:1: the file: "),
        ("- a\n", "c.yaml:1: the file: "),
        ("daemon: {}\n", "missing required field `sites`"),
        ("sites: {}\n", "at least one site"),
        ("\nsites:\n", "c.yaml:2: sites: "),
        ("sites:\n  a b: {backend: local}\n", "c.yaml:2: sites.a b: the name of a site"),
        ("sites:\n  1: {backend: local}\n", "c.yaml:1: sites: a key that is not text; put it in quotes"),
        ("sites:\n\tx: 5\n", "c.yaml:2: not valid YAML"),
        ("sites: [\n", "not valid YAML"),
        ("sites: !!python/object:os.system {}\n", "not valid YAML"),
        ("sites: 2020-13-45\n", "sites: needs a mapping of keys to values, not text"),
        ("sites: \x00\n", "not valid YAML"),
        ("? [a, b]\n: 1\n", "a key must be a text"),
        ("sites: &a\n  x: *a\n", "recursive YAML alias"),
        ("sites: {a: {backend: local}}\n---\nmore: 1\n", "not valid YAML"),
        (site("") + "daemon: {port: 70000}\n", "c.yaml:4: daemon.port: must be from 0 to 65535"),
        (site("") + "daemon: {port: -1}\n", "daemon.port: must be from 0 to 65535"),
        (site("") + "daemon: {worker_timeout: 0}\n", "daemon.worker_timeout: must be more than 0"),
    ],
)
def test_a_file_that_is_none(text: str, what: str) -> None:
    message = broken(text)
    assert message.startswith("c.yaml")
    assert what in message


def test_numbers_are_those_that_a_reader_sees() -> None:
    """In YAML 1.1, 010 is 8, 1:30:00 is 5400, 1e3 is text, and 2026-11-28 is a date."""
    lines = (
        "limits: {max_proc: 010}\naccount: 2026-11-28\ninitial_tr: 1:30:00\npad: 090\nprice: {explicit: 1e3}"
    )
    hpc = parse_config(site(lines), "c.yaml").sites["hpc"]
    assert hpc.limits.max_proc == 10
    assert hpc.account == "2026-11-28"
    assert (hpc.initial_tr, hpc.pad, hpc.price.explicit) == (5400, 90, 1000)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("account: 007", "account: needs text, not a whole number: put it in quotes"),
        ("partition: no", "partition: needs text, not true or false: put it in quotes"),
        ("limits: {max_proc: 1:30}", "limits.max_proc: needs a whole number, not text"),
        ("limits: {max_proc: 1_000}", "limits.max_proc: needs a whole number, not text"),
        (
            "price: 10",
            "price: needs a mapping of keys to values, not a whole number; its keys are explicit, ",
        ),
        ("ssh: login", "ssh: needs a mapping of keys to values, not text; its keys are host, user, port, "),
        (
            "node_folder: scratch",
            "node_folder: 'scratch' is not an absolute path, and begins with no variable",
        ),
        ("shell: ''", "shell: '' names no shell; write bash, zsh or 'bash -l'"),
        ("shell: bash 'x", 'shell: "bash \'x" is not a shell and its options: No closing quotation'),
    ],
)
def test_a_value_of_another_kind_names_what_the_key_takes(line: str, problem: str) -> None:
    assert broken(site(line)).startswith(f"c.yaml:4: sites.hpc.{problem}")


@given(st.text(max_size=60))
def test_any_text_is_a_configuration_or_a_clear_error(text: str) -> None:
    try:
        config = parse_config(text, "c.yaml")
    except ConfigError as error:
        problem = str(error)
    else:
        problem = "c.yaml" if isinstance(config, Config) else "not a configuration"
    assert problem.startswith("c.yaml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        load_config(tmp_path)
    (tmp_path / "latin").write_bytes(b"sites: \xff")
    with pytest.raises(ConfigError, match="latin: cannot be read"):
        load_config(tmp_path / "latin")


def test_without_a_file_the_local_site_serves() -> None:
    assert load_config(None) is BUILT_IN
    assert BUILT_IN.sites["local"].backend == "local"


def test_the_option_counts_before_the_environment_and_that_before_the_xdg_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    option, variable = tmp_path / "option.yaml", tmp_path / "variable.yaml"
    xdg = tmp_path / "adaptor" / "config.yaml"
    xdg.parent.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ADAPTOR_CONFIG", raising=False)
    assert config_path() is None
    for path in (option, variable, xdg):
        path.touch()
    assert config_path() == xdg
    monkeypatch.setenv("ADAPTOR_CONFIG", str(variable))
    assert config_path() == variable
    assert config_path(str(option)) == option


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: no such file \(given by --config\)"):
        config_path(str(tmp_path / "gone.yaml"))
    monkeypatch.setenv("ADAPTOR_CONFIG", str(tmp_path / "gone.yaml"))
    with pytest.raises(ConfigError, match=r"given by \$ADAPTOR_CONFIG"):
        config_path()
    with pytest.raises(ConfigError, match=r": a folder, not a file \(given by --config\)"):
        config_path(str(tmp_path))


@pytest.mark.parametrize("name", ["site.yaml", "a 'b'\nc.yaml", "caf\udce9.yaml"])
def test_the_file_of_the_last_daemon_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert (last_config(tmp_path), last_sites(tmp_path)) == (None, [])
    remember_config(tmp_path, tmp_path / name, ["hpc", "here"])
    assert (last_config(tmp_path), last_sites(tmp_path)) == (tmp_path / name, ["hpc", "here"])
    assert (tmp_path / LAST).stat().st_mode & 0o777 == 0o600
    monkeypatch.chdir(tmp_path)
    remember_config(tmp_path, Path("relative.yaml"), ["hpc"])
    assert last_config(tmp_path) == tmp_path / "relative.yaml"
    remember_config(tmp_path, None, ["local"])
    assert (last_config(tmp_path), last_sites(tmp_path)) == (None, ["local"])


def test_a_note_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(AdaptorError, match=f"nowhere/{LAST}: cannot be written: No such file"):
        remember_config(tmp_path / "nowhere", tmp_path / "site.yaml", [])
