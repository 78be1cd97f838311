"""Kafka's wire protocol, sans I/O: messages, codec, error codes, record batch headers.

Imports nothing of ours. Start at `codec` (bytes to messages and back), `messages` (the classes), `records` (batch
headers) and `errors`.
"""
