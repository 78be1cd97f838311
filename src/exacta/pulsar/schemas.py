"""The schemas that clients may name: those whose messages everybody can read without one (decision 0036).

Owns the choice. No topic has a schema, so nothing is kept. STRING is UTF-8 without a schema's data, and BYTES is no
schema at all: a consumer of either reads the messages of both. A schema version stands in every message that is sent
with it. So there is none, and a version that a registry gives out later means what it says.

    type                   PRODUCER, SUBSCRIBE, GET_OR_CREATE_SCHEMA
    none named, NoSchema   served: BYTES, and the clients' automatic schemas before they know better
    String                 served
    AutoConsume            served: the client reads what a topic has, which is bytes
    every other            IncompatibleSchema
"""

from typing import Final

from exacta.protocol.pulsar.messages_pb2 import Schema

SERVED: Final = frozenset({Schema.NoSchema, Schema.String, Schema.AutoConsume})

NO_VERSION: Final = b""
"""The version of a schema that is served."""


def refusal_of(schema: Schema) -> str | None:
    """Say why a schema is not served, and what to do instead; None: it is served. One that is not set is."""
    if schema.type in SERVED:
        return None
    return (
        f"the schema {schema.name!r} is of the type {_name(schema.type)}, and this broker serves only BYTES and STRING "
        f"yet: let the application encode its messages, and use Schema.BYTES (or no schema)"
    )


def _name(type: "Schema.Type") -> str:
    return Schema.Type.Name(type).upper()
