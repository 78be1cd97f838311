"""Apache Pulsar's front: unmodified clients connect, look topics up, produce, and run transactions.

Start at `connection.py` (frames to commands, and the order of answers) and `handlers/` (one module per command). It
loads `protobuf`, which comes with the extra `exacta-log[pulsar]`, so that nothing imports this package before somebody
asks for Pulsar. It does not know Kafka's front; both speak to the same engine.
"""
