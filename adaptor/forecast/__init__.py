"""Forecast of the end and the cost of a bag: its courses on possible futures of the queues. Pure."""
