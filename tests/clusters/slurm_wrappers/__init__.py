"""Slurm behind its wrappers of Torque's commands: a test double of Torque, not a dialect of the product."""
