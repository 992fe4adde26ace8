"""A throwaway OpenPBS for a person to play with: `python -m tests.clusters.play_openpbs`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.clusters.openpbs import ThrowawayOpenPbs, unavailable
from tests.clusters.openpbs_conf import EXEC, ClusterOptions
from tests.clusters.throwaway import play


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clusters.play_openpbs", description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--cpus", type=int, default=4, help="processors of a node (default 4)")
    parser.add_argument("--split", type=int, nargs="*", default=[], help="nodes of two vnodes, from 1")
    parser.add_argument("--preempt-order", default="D")
    parser.add_argument("--no-history", action="store_true")
    parser.add_argument("--gpus", type=int, default=0, help="of a node, only counted")
    parser.add_argument(
        "--cgroups", nargs="*", default=[], help="controllers of the hook pbs_cgroups: cpuset memory cpuacct"
    )
    chosen = parser.parse_args(arguments)
    options = ClusterOptions(
        nodes=chosen.nodes,
        cpus=chosen.cpus,
        split=tuple(chosen.split),
        preempt_order=chosen.preempt_order,
        history=not chosen.no_history,
        gpus=chosen.gpus,
        cgroups=tuple(chosen.cgroups),
    )
    return play(
        unavailable(),
        lambda: ThrowawayOpenPbs(options),
        lambda cluster: _HOW_TO.format(cluster=cluster, exec=EXEC, options=options),
    )


_HOW_TO = """\
A throwaway OpenPBS runs: nodes {cluster.nodes} of {options.cpus} processors;
queues workq, express and scavenger.
In another terminal:

    export PBS_CONF_FILE={cluster.conf} PATH={exec}/bin:$PATH
    pbsnodes -aSj
    adaptor site init --output site.yaml
    adaptor --config site.yaml run FILE

Ctrl-C here stops it and ends its jobs."""

if __name__ == "__main__":
    sys.exit(main())
