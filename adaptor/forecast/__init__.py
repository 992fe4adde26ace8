"""When a bag will be done and what it will cost: its courses on possible futures of the queues. Pure."""
