"""The names under which one protocol's clients find what only the other one has a field for."""

from typing import Final

# --- headers of Kafka's records that were Pulsar's messages -----------------------------------------------------------

KEY_IS_BYTES: Final = b"pulsar-key-is-bytes"
EVENT_TIME: Final = b"pulsar-event-time"
ORDERING_KEY: Final = b"pulsar-ordering-key"
SEQUENCE_ID: Final = b"pulsar-sequence-id"
PRODUCER_NAME: Final = b"pulsar-producer-name"
SCHEMA_VERSION: Final = b"pulsar-schema-version"
SCHEMA_ID: Final = b"pulsar-schema-id"
DELIVER_AT: Final = b"pulsar-deliver-at"
REPLICATED_FROM: Final = b"pulsar-replicated-from"
REPLICATE_TO: Final = b"pulsar-replicate-to"

OPAQUE: Final = b"pulsar-opaque"
METADATA: Final = b"pulsar-metadata"
CHUNK_UUID: Final = b"pulsar-chunk-uuid"
CHUNK_ID: Final = b"pulsar-chunk-id"
CHUNK_COUNT: Final = b"pulsar-chunk-count"
CHUNK_TOTAL_SIZE: Final = b"pulsar-chunk-total-size"

TRUE: Final = b"true"

OF_ENTRIES: Final = frozenset({PRODUCER_NAME, SCHEMA_VERSION, SCHEMA_ID, DELIVER_AT, REPLICATED_FROM, REPLICATE_TO})
"""Headers that become fields of an entry again, where all its messages agree."""

OF_FIELDS: Final = frozenset({KEY_IS_BYTES, EVENT_TIME, ORDERING_KEY, SEQUENCE_ID}) | OF_ENTRIES
"""Headers that become fields again, of an entry or of a message."""

# --- properties of Pulsar's messages that were Kafka's records --------------------------------------------------------

KAFKA_HEADERS: Final = b"kafka-headers"
"""All headers of the record, as Kafka encodes them, in base64."""

KAFKA_OPAQUE: Final = b"kafka-opaque"
KAFKA_BATCH_HEADER: Final = b"kafka-batch-header"
"""The header of the batch that could not be opened, 61 bytes, in base64."""

KAFKA_SIZE: Final = b"kafka-size"
"""The number of the bytes, where they are more than a consumer takes."""
