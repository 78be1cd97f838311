"""Apache Kafka beside us: brings one release from Maven Central and runs a single node of it.

Owns the release's version, where its jars are kept and how a node is configured. Does not own the node's life while
the benchmark runs (`benchmarks.brokers`). `python -m benchmarks.kafka` runs a node in the foreground, for whoever
wants one.
"""
