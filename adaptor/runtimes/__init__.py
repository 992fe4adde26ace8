"""Runtimes of tasks: learned, summed, sampled, and the distributions that are possible. Pure."""
