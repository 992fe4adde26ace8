"""`ssh:` and `environment:` of a site: what is wrong is named by file, line and key."""

from __future__ import annotations

import pytest

from adaptor.config.loading import parse_config
from adaptor.errors import ConfigError

HEAD = "sites:\n  far:\n    backend: slurm\n"


def broken(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "c.yaml")
    return str(caught.value)


def test_the_host_is_enough() -> None:
    site = parse_config(HEAD + "    ssh: {host: login.example.org}\n", "c.yaml").sites["far"]
    assert site.ssh is not None
    assert (site.ssh.host, site.spool, site.ssh.directory) == ("login.example.org", None, ".adaptor")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("{}", "Object missing required field `host`"),
        ("{host: -oProxyCommand=reboot}", "ssh.host: '-oProxyCommand=reboot' is not a name"),
        ("{host: 'a b'}", "ssh.host: 'a b' is not a name"),
        ('{host: "a\\n"}', "ssh.host: 'a\\n' is not a name"),
        ("{host: a, user: -l}", "ssh.user: '-l' is not a name"),
        ("{host: a, port: 70000}", "ssh.port: must be from 1 to 65535, not 70000"),
        ("{host: a, directory: ''}", "ssh.directory: must be a remote path"),
        ("{host: a, directory: ~/adaptor}", "ssh.directory: must be a remote path"),
        ("{host: a, hots: b}", "ssh.hots: unknown key (did you mean `host`?)"),
        (
            "{host: a, options: {ControlPath: /tmp/x}}",
            "ssh.options.ControlPath: is set by the adaptor itself",
        ),
        ("{host: a, options: {'a b': c}}", "is not a setting of ssh_config(5)"),
    ],
)
def test_what_is_wrong_is_named(given: str, complaint: str) -> None:
    said = broken(f"{HEAD}    ssh: {given}\n")
    assert said.startswith("c.yaml:4: sites.far.ssh")
    assert complaint in said


def test_this_machine_is_not_reached_over_ssh() -> None:
    text = "sites:\n  far:\n    backend: local\n    ssh: {host: a}\n"
    assert "c.yaml:4: sites.far.ssh: backend local is this machine" in broken(text)


def test_variables_have_names_that_a_shell_can_set() -> None:
    found = parse_config(HEAD + "    environment: {SLURM_CONF: /etc/far.conf}\n", "c.yaml")
    assert found.sites["far"].environment == {"SLURM_CONF": "/etc/far.conf"}
    assert "environment.A-B: the name of a variable" in broken(HEAD + "    environment: {A-B: c}\n")
    assert "needs text, not a whole number" in broken(HEAD + "    environment: {PORT: 6817}\n")
