"""What Slurm's nodes have, what jobs hold of each, and where waiting ones may run."""
