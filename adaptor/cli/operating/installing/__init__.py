"""What brings the daemon back after a reboot: a systemd user unit, else a crontab."""
