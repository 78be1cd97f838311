"""Apache Kafka beside us: brings one release from Maven Central and runs a node of it, or a cluster of some.

Owns the release's version, where its jars are kept and how nodes are configured, with TLS and SASL where that is asked
for. Does not own a node's life while the benchmark runs (`benchmarks.brokers`). `python -m benchmarks.kafka` runs it in
the foreground, for a user who wants one.
"""
