"""Apache Pulsar beside us: brings one release from Maven Central, runs it standalone, and loads it by its own client.

Owns the release's version, how a standalone server is configured, and the cases of the benchmark beside it. The load is
`PulsarLoad.java`, which is compiled in the run, and is the same for both brokers. `python -m benchmarks.pulsar` runs
the cases.
"""
