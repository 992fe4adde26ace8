"""What the daemon stands on: its files, and the threads of its machine."""
