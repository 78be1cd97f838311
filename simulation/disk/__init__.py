"""The simulated disk, and a process's view of it."""
