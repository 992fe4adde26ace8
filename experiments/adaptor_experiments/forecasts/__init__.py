"""Accuracy of the forecasts that users are shown, on simulated bags: on queues of traces, and paid for."""
