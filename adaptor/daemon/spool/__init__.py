"""The daemon's end of the spools through which workers without a route exchange messages."""
