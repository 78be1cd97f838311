"""Consume, transform, produce, exactly once, with the clients that a program has: `exacta.exactly_once`.

The package speaks no protocol. It calls confluent-kafka or aiokafka, on whatever broker these are connected to, and
keeps the order of their calls. `recognition.py` is what a program calls. `confluent.py` and `aio.py` each own one
client, and are loaded only for it. Neither client comes with Exacta.
"""
