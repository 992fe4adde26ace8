"""Workers on idle nodes outside the scheduler's book-keeping (De Rose §3, CronoGuMP)."""
