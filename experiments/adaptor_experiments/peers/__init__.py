"""What users do with bags today: job arrays, chunks, whole nodes."""
