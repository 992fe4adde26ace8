"""The ground of the daemon: its files, and the threads for calls of its machine."""
