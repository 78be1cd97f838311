"""What a log of many gigabytes costs: memory, and the start after a kill (`python -m benchmarks.storage`)."""
