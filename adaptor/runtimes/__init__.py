"""What is known of the runtimes of tasks: learned, summed, sampled, and what they may be. Pure."""
