"""Task runtimes as they are learned, and forecasts of the end and the cost of a bag. Pure."""
