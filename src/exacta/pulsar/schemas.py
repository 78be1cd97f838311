"""The schemas that clients may name: those whose messages everybody can read without one (decision 0036).

Owns the choice. No topic has a schema, so nothing is kept, and producers and consumers of BYTES and STRING share a
topic. A message says that it is a STRING by its schema version, which is one number for all topics.

    type                   three commands *    version
    none named, NoSchema   served              -
    String                 served              STRING_VERSION
    AutoConsume            served **           -
    every other            IncompatibleSchema  -

* PRODUCER, SUBSCRIBE and GET_OR_CREATE_SCHEMA. Where no type is named, the messages are BYTES.

** The client asks for what it gets.
"""

from typing import Final

from exacta.protocol.pulsar.messages_pb2 import Schema

STRING_VERSION: Final = b"\0\0STRING"
"""Clients read a version as an integer of 64 bits. One that counts the schemas of a topic never comes to this."""

NO_VERSION: Final = b""

VERSIONS: Final = {Schema.NoSchema: NO_VERSION, Schema.String: STRING_VERSION, Schema.AutoConsume: NO_VERSION}
"""The types that are served, and the versions of their schemas."""


def refusal_of(schema: Schema) -> str | None:
    """Say why a schema is not served, and what to do instead; None: it is served. One that is not set is."""
    if schema.type in VERSIONS:
        return None
    return (
        f"{Schema.Type.Name(schema.type).upper()} schemas are not served yet, only BYTES and STRING: "
        "let the application encode its messages, and use Schema.BYTES (or no schema)"
    )


def version_of(schema: Schema) -> bytes:
    """Return the version of a schema that is served."""
    return VERSIONS[schema.type]
