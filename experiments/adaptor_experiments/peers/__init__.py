"""Ways in which users run bags today: job arrays, chunks, whole nodes."""
