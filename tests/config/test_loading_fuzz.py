"""Whatever stands in a configuration: a configuration, or an error that names the place."""

from __future__ import annotations

from hypothesis import given

from adaptor.config.loading import parse_config
from tests.config.test_loading import ALIASES, FULL, MERGES
from tests.fuzzing import damaged, fuzz, survives

MORE = """\
sites:
  far: &far
    backend: slurm
    ssh: {host: login, user: me, port: 22, options: {Compression: "yes"}, address: node}
    price: {explicit: 2.5, donated: 1}
    budget: {credits: 100, period: month, zone: Europe/Lisbon}
    donation: {mode: preemptible, partition: lent, hours: ["19:00-07:30"], fit: 0.5}
    environment: {A: b}
  two: {<<: *far, backend: pbs}
"""


@fuzz
@given(damaged([FULL, MORE, *FULL.split("\n"), *MORE.split("\n"), ALIASES, MERGES]))
def test_any_text_is_a_configuration_or_a_clear_error(text: str) -> None:
    survives(parse_config, text, "c.yaml")
