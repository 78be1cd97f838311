"""The costs of a log: memory and start with many gigabytes (`benchmarks.storage`), freeing space (`.pauses`)."""
