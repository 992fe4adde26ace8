"""The Torque dialect."""
