"""Names of producer settings.

They are apart from the producer, so that a check of options need not load the record codec.
"""

COMPRESSION = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Compression codecs by Kafka's names, with their number in a record batch's attributes."""
