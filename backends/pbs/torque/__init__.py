"""The Torque dialect: Torque itself, and Slurm's wrappers that speak its language."""
