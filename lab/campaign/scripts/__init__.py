"""The same batch scripts through sbatch and through `adaptor submit`: what is equal, and what is not."""
