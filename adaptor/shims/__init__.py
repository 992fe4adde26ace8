"""Slurm's commands in front of bags: small jobs become tasks, all else goes to the real commands.

`adaptor shims DIR` writes `sbatch`, `squeue`, `scancel`, `sacct`, `scontrol` and `sinfo` into a folder that
stands first in PATH. Each runs this package with its name.
"""
