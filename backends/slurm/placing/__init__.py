"""Placing on Slurm's nodes: what nodes have, what jobs hold of each, and where waiting ones may run."""
