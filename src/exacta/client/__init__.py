"""The internal Kafka client of source, sink and tools: connections, routing, retries. It is no public client.

It exists for what no client library offers: transactions that another process ends, and chosen producer ids and
epochs (decision D6). It blocks, because Spark's Python workers do. It speaks version 1 of the transaction protocol:
the epoch of a transactional id then changes only by `InitProducerId`, which the sink's protocol leans on. The exception
is `two_phase.py`, for transactions that a database decides (`exacta.databases`).
"""
