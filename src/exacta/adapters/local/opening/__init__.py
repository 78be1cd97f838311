"""Opening a data directory: reading what is there, and mending what a crash explains."""
