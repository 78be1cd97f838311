"""The isolation level that a consumer asks for, by a property: no command of Pulsar's protocol has a field for it.

PIP-298 has such a field, which neither Apache Pulsar 4.2 nor its clients know. But clients can send a property of the
consumer (also of a reader, by those for Go and C++), or one of the subscription. Both count here.
"""

from typing import Final

from exacta.core.state.subscription import IsolationLevel
from exacta.protocol.pulsar.messages_pb2 import CommandSubscribe

ISOLATION_LEVEL: Final = "isolation.level"
"""The property, by the name of Kafka's option."""

_MOST_SHOWN: Final = 50
"""This many values, and this many characters of each, are told to a client that has sent others: a frame has room for
millions."""


def isolation_level_of(command: CommandSubscribe) -> IsolationLevel:
    """Return the level that a SUBSCRIBE asks for; raise ValueError, with words for the client, if it names none."""
    properties = (*command.metadata, *command.subscription_properties)
    values = {each.value for each in properties if each.key == ISOLATION_LEVEL}
    words = {each.upper() for each in values}
    if not words:
        return IsolationLevel.READ_COMMITTED
    if len(words) > 1 or not words <= IsolationLevel.__members__.keys():
        found = ", ".join(sorted(repr(each[:_MOST_SHOWN]) for each in values)[:_MOST_SHOWN])
        raise ValueError(f"the property {ISOLATION_LEVEL} is read_committed or read_uncommitted, and not {found}")
    return IsolationLevel[words.pop()]
