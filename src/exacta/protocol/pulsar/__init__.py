"""Apache Pulsar's binary protocol, sans I/O: messages, frames, entries, message ids, topic names.

Imports nothing of ours, and `protobuf`, which only comes with the extra `exacta-log[pulsar]`. So nothing may import
this package before somebody asks for Pulsar. Start at `frames` (bytes to commands and back) and `entries` (what a
producer sends for a topic). The messages stand in `messages.proto`.
"""
