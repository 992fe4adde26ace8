"""Sites behind ssh: their machines, and the routes by which their workers reach the daemon."""
