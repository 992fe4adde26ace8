"""The only place with a clock, threads and sockets: observe, decide, act."""
