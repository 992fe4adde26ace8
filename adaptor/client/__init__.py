"""Programs that talk to the daemon: the command line, and all that appends tasks as it goes."""
