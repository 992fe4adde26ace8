"""How often the forecasts that users are shown hold, on simulated bags."""
