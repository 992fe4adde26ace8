"""How often bags end within the interval that their users are told, on the queues of traces."""
