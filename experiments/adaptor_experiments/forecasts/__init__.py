"""How often the forecasts that users are shown hold, on simulated bags: on queues of traces, and paid for."""
