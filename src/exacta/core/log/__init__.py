"""The rules of topics and of the log: appending, idempotence (KIP-98), the log's start, aborted ranges."""
