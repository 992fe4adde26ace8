"""`python -m lab.campaign.scripts`: the table of what differs, on a throwaway Slurm of its own."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from lab.campaign.scripts.cases import CASES, DANGEROUS
from lab.campaign.scripts.comparing import SITE, compare, slurm_with_tmpdir
from lab.campaign.scripts.public_cases import public_cases
from tests.clusters.slurm import available
from tests.e2e.lab import Lab


def main() -> int:
    """The exit code: 0 if outputs, names and exit codes of all scripts are equal."""
    if reason := available():
        print(reason, file=sys.stderr)
        return 2
    different, variables = 0, set[str]()
    cases = (*CASES, *DANGEROUS, *public_cases())
    with tempfile.TemporaryDirectory() as folder, slurm_with_tmpdir(Path(folder)) as slurm:
        os.environ.update(slurm.env)
        lab = Lab(Path(folder))
        lab.configure(SITE)
        try:
            for case in cases:
                found, changed = compare(case, slurm, lab)
                variables |= changed
                different += bool(found)
                print(f"{case.name:45} {'; '.join(found) or 'equal'}", flush=True)
        finally:
            lab.close()
    print(f"\n{len(cases) - different} of {len(cases)} equal in outputs, names and exit codes")
    print("variables with other values, of sbatch and of adaptor:", *sorted(variables), sep="\n  ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
