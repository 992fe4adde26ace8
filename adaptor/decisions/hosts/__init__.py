"""Hosts that bags with a preference or a deadline may buy, and when they end. Pure."""
