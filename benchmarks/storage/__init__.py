"""What a log costs: memory and start with many gigabytes (`benchmarks.storage`), freeing space (`.pauses`)."""
