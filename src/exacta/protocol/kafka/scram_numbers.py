"""The SCRAM mechanisms, by SASL's names, as Kafka's requests number them (KIP-554)."""

from typing import Final

MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
